"""Limits: loops of reductions that run over a part of their index's range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.spec import Equation, Expr, Reduce


@dataclass(frozen=True, slots=True)
class Limit:
    """The bounds of a loop; an `Index` in them stands for the origin of its tile."""

    low: Expr
    high: Expr


def limits(equation: Equation) -> Mapping[str, Limit]:
    """The limits of the loops of a reduction, of those that have any."""
    value = equation.value
    found = value.ranges if isinstance(value, Reduce) else ()
    return {r.index: Limit(r.low, r.high) for r in found if r.partial}
