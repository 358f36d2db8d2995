"""Parameters: what of a policy can be set in its wording, `islands,count=4,every=3`.

A policy is a dataclass; a field made by `whole`, `real` or `word` is a parameter, any other is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from ir.errors import KernelError
from ir.source import near

OPTION = "--policy"


def whole(default: int, least: int, most: int) -> Any:
    """A whole number from `least` to `most`."""
    return _parameter(default, f"a whole number from {least} to {most}", int, least, most)


def real(default: float, least: float, most: float) -> Any:
    """A number from `least` to `most`."""
    return _parameter(default, f"a number from {least:g} to {most:g}", float, least, most)


def word(default: str, *allowed: str) -> Any:
    """One of some words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError
        return text

    return field(default=default, metadata={"read": read, "allowed": ", ".join(allowed)})


def values(name: str, kind: type, settings: list[str]) -> dict[str, Any]:
    """The parameters of a kind of policy that `key=value` texts set; KernelError names what is
    wrong, and what is allowed."""
    known = {f.name: f.metadata for f in fields(kind) if "read" in f.metadata}
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or key not in known:
            raise KernelError(
                f"policy `{name}` has no parameter `{key}`"
                if equals
                else f"`{setting}` is no `parameter=value` of policy `{name}`",
                where=OPTION,
                allowed=", ".join(known) or "none",
                hint=near(key, list(known), f"{OPTION}={name} alone takes the usual values"),
            )
        if key in found:
            raise KernelError(f"`{key}` is given twice", where=OPTION, hint="give it once")
        try:
            found[key] = known[key]["read"](text)
        except ValueError:
            raise KernelError(
                f"`{key}` of policy `{name}` is `{text}`",
                where=OPTION,
                allowed=known[key]["allowed"],
            ) from None
    return found


def _parameter(
    default: float, allowed: str, kind: Callable[[str], float], least: float, most: float
) -> Any:
    def read(text: str) -> float:
        value = kind(text)
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError
        return value

    return field(default=default, metadata={"read": read, "allowed": allowed})
