"""Spelling: what the templates of every language ask of values beside their fields."""

from __future__ import annotations

from typing import Any

from backends.gpu import values
from ir.spec import Apply, Expr, Number


def kind(node: object) -> str:
    """The sort of a node."""
    return type(node).__name__


def negative(expr: Expr) -> bool:
    """Whether an expression is a negative constant."""
    return isinstance(expr, Number) and not isinstance(expr.value, bool) and expr.value < 0


def loose(expr: Expr) -> bool:
    """Whether a scalar needs brackets before a product."""
    return negative(expr) or isinstance(expr, Apply) and expr.function in ("add", "sub")


def divides(expr: Expr) -> bool:
    """Whether a scalar needs brackets as a factor on the right."""
    return isinstance(expr, Apply) and expr.function in ("floordiv", "mod")


FILTERS: dict[str, Any] = {
    f.__name__: f for f in (kind, negative, loose, divides, values.adds, values.signed)
}
