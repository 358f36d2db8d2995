"""Packages that a wish needs: a missing one is told before anything starts."""

from __future__ import annotations

from importlib.util import find_spec

from ir.errors import KernelError


def require(package: str, purpose: str, hint: str, where: str = "") -> None:
    """KernelError where a package is not installed. purpose: what it is for, as a sentence."""
    if find_spec(package) is None:
        what = f"the Python package `{package}` is not installed here: {purpose}"
        raise KernelError(what, where=where, hint=hint)
