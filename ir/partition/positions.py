"""Compares indices in i32 instead of i64, where nothing can overflow.

before: where(i64(k) <= i64(j) - 40, ..), as PyTorch's `arange` has dtype i64
after:  where(k <= j - 40, ..)

A mask then costs half as much, and a loop can end where the mask begins (`causal_bound`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.spec import Apply, Cast, Expr, Index, Number, Spec
from ir.verify import facts
from ir.visit import rebuilt

_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
_MOST = 2**31 - 1


def with_plain_positions(spec: Spec) -> Spec:
    """Narrows comparisons of positions from i64 to i32 in a literal spec."""
    ranges = facts(spec).ranges
    extents = {i: int(r.high.value) for i, r in ranges.items() if isinstance(r.high, Number)}
    made = tuple(replace(e, value=_plain(e.value, extents)) for e in spec.equations)
    return replace(spec, equations=made) if made != spec.equations else spec


def _plain(expr: Expr, extents: Mapping[str, int]) -> Expr:
    if isinstance(expr, Apply) and expr.function in _COMPARED:
        bare = tuple(_position(part, extents) for part in expr.args)
        if all(part is not None and part[1] <= _MOST for part in bare):
            return replace(expr, args=tuple(part[0] for part in bare if part is not None))
    return rebuilt(expr, lambda part: _plain(part, extents))


def _position(expr: Expr, extents: Mapping[str, int]) -> tuple[Expr, int] | None:
    """A sum of indices and numbers without its casts, and a bound of every partial sum's absolute
    value.

    None for any other expression.
    """
    match expr:
        case Index(name) if name in extents:
            return expr, extents[name]
        case Number(value) if type(value) is int:
            return expr, abs(value)
        case Cast("i64" | "i32", value):
            return _position(value, extents)
        case Apply("add" | "sub", (a, b)):
            first, second = _position(a, extents), _position(b, extents)
            if first is None or second is None:
                return None
            return replace(expr, args=(first[0], second[0])), first[1] + second[1]
    return None
