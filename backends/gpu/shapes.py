"""Shapes: broadcasts and permutes tensors to other axes."""

from __future__ import annotations

from backends.gpu.tile import Permuted, Spread
from ir.spec import Expr


def spread(value: Expr, axes: tuple[str, ...], over: tuple[str, ...]) -> Expr:
    """A tensor over `axes`, with axes of one element inserted so that it broadcasts over `over`."""
    if not axes or axes == over:
        return value
    ordered = tuple(a for a in over if a in axes)
    value = permuted(value, axes, ordered)
    return value if ordered == over else Spread(value, tuple(a in ordered for a in over))


def permuted(value: Expr, axes: tuple[str, ...], into: tuple[str, ...]) -> Expr:
    """A tensor over `axes`, permuted to another order."""
    return value if axes == into else Permuted(value, tuple(axes.index(a) for a in into))
