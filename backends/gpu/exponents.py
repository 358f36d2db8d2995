"""Exponents: finds maxima that need not propagate NaN, as they are only subtracted in exponents.

    mx = max(x, k); p = exp(x - mx); s = sum(p, k); y = p / s

A NaN in a row of x makes p NaN there, and so s and all of y, whatever mx is. A maximum that
propagates NaN takes one instruction on some machines, and three for each element on others.
"""

from __future__ import annotations

from collections.abc import Collection

from backends.gpu.uses import tiles
from ir.nest.nest import Dot, Launch, Map, Reduction, Statement, Store, Tile
from ir.spec import FLOATS, Apply, Cast, Expr

_KEEP = ("add", "sub", "mul", "div", "neg")  # functions that propagate NaN


def exponents(launch: Launch) -> frozenset[str]:
    """The maxima of a launch whose NaN reaches everything that is stored without them."""
    statements = tuple(launch.statements())
    tops = [s for s in statements if isinstance(s, Reduction) and s.reduction == "max"]
    return frozenset(s.value for s in tops if _unneeded(statements, s))


def _unneeded(statements: tuple[Statement, ...], top: Reduction) -> bool:
    """Whether everything that is stored is NaN where a row of the maximum has NaN, even if the maximum is not."""
    if any(
        s.value == top.value for s in statements if isinstance(s, Map | Reduction) and s is not top
    ):
        return False
    sums = _sums(statements, top)
    unsure, count = {top.value}, 0  # values that lack the NaN of the maximum
    while count < len(unsure):
        count = len(unsure)
        for s in statements:
            known = isinstance(s, Map) and _keeps(s.expression, sums)
            if s is top or known or isinstance(s, Reduction | Dot) and Tile(s.value) in sums:
                continue
            if not unsure & {t.value for t in tiles(s)}:
                if isinstance(s, Store) and s.value in unsure:
                    return False
            elif isinstance(s, Map | Reduction | Dot):
                unsure.add(s.value)
            else:
                return False
    return not any(Tile(value) in sums for value in unsure)


def _sums(statements: tuple[Statement, ...], top: Reduction) -> set[Expr]:
    """The values that are NaN in each row that has NaN: sums of exponentials, and values computed from them."""
    terms: set[Expr] = {Apply("exp", (Apply("sub", (top.source, Tile(top.value))),))}
    sums: set[Expr] = set()
    for s in statements:
        match s:
            case Map(value, expression) if _keeps(expression, sums):
                sums.add(Tile(value))
            case Map(value, expression) if _keeps(expression, terms):
                terms.add(Tile(value))
            case Reduction(value, "sum", source) if source in terms and {*top.over} <= {*s.over}:
                sums.add(Tile(value))
            case Dot(value, a, b) if terms & {a, b} and {*top.over} <= {*s.over}:
                sums.add(Tile(value))
    return sums


def _keeps(expr: Expr, of: Collection[Expr]) -> bool:
    """Whether an expression is NaN where one of these is. Rounding to tf32 may lose NaN."""
    match expr:
        case Cast(dtype, value):
            return dtype in FLOATS and dtype != "tf32" and _keeps(value, of)
        case Apply(function, args) if function in _KEEP:
            return any(_keeps(a, of) for a in args)
    return expr in of
