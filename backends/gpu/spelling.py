"""Predicates of expressions that the templates of all languages use."""

from __future__ import annotations

from typing import Any

from backends.gpu import values
from ir.spec import Apply, Expr, Number


def kind(node: object) -> str:
    """The class name of a node."""
    return type(node).__name__


def negative(expr: Expr) -> bool:
    """Whether an expression is a negative constant."""
    return isinstance(expr, Number) and not isinstance(expr.value, bool) and expr.value < 0


def loose(expr: Expr) -> bool:
    """Whether a scalar needs parentheses as a factor."""
    return negative(expr) or isinstance(expr, Apply) and expr.function in ("add", "sub")


def divides(expr: Expr) -> bool:
    """Whether a scalar needs parentheses as a right factor."""
    return isinstance(expr, Apply) and expr.function in ("floordiv", "mod")


FILTERS: dict[str, Any] = {
    f.__name__: f for f in (kind, negative, loose, divides, values.adds, values.signed)
}
