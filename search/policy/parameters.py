"""Parameters: the values in a policy's text, such as `islands,count=4,every=3`.

A policy is a dataclass. Fields made by `whole`, `real` or `word` are parameters; others are not.
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
    """A parameter: an integer from `least` to `most`."""
    return _parameter(default, f"a whole number from {least} to {most}", int, least, most)


def real(default: float, least: float, most: float) -> Any:
    """A parameter: a number from `least` to `most`."""
    return _parameter(default, f"a number from {least:g} to {most:g}", float, least, most)


def word(default: str, *allowed: str) -> Any:
    """A parameter: one of some words."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError
        return text

    return field(default=default, metadata={"read": read, "allowed": ", ".join(allowed)})


def values(name: str, kind: type, settings: list[str]) -> dict[str, Any]:
    """The parameters of a policy class from `key=value` texts. Raises KernelError with the fault
    and the allowed values."""
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
