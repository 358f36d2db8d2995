"""Bounds of loops that cover part of their index's range (causal bounds, parts of split-K)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from ir.affine import fold_constants
from ir.errors import KernelError
from ir.functions import IDENTITY_ELEMENTS
from ir.lower.launches import Tiling
from ir.schedule import Decision, Schedule
from ir.spec import Apply, Equation, Expr, Index, Number, Range, Reduce, Spec
from ir.variant.derived import counts_parts
from ir.variant.masks import beyond, borders


@dataclass(frozen=True, slots=True)
class Limit:
    """The bounds of a loop; an `Index` in them is the origin of its tile."""

    low: Expr
    high: Expr  # exclusive


def limits(
    equation: Equation, spec: Spec, schedule: Schedule, tilings: Mapping[str, Tiling]
) -> Mapping[str, Limit]:
    """The bounds of a reduction's loops, by index, where they differ from the whole range.

    They come from partial ranges in the spec, from parts of a split, and from `causal_bound`.
    """
    value = equation.value
    found = [r for r in value.ranges if r.partial] if isinstance(value, Reduce) else []
    for r in found:
        if not any(counts_parts(schedule, i) for i in _names(r)):
            _require_walked(equation, r, tilings)
    limited = {r.index: Limit(r.low, r.high) for r in found}
    for decision in schedule.of("causal_bound"):
        index = decision.subject
        if index in equation.reduced:
            span = limited.get(index, _whole(tilings[index].range))
            limited[index] = _cut(equation, spec, decision, span, tilings)
    return limited


def _require_walked(equation: Equation, span: Range, tilings: Mapping[str, Tiling]) -> None:
    """Raises KernelError unless a loop over a partial range is legal.

    Its tiles must have size 1, and the bounds must be the same across each enclosing tile.
    """
    own = tilings[span.index]
    if own.tile != 1:
        raise KernelError(
            f"`{equation.target}` runs over a part of `{span.index}`, which is not walked one at a time",
            place=span.place,
            hint=f"tile({span.index}, size=1) and place({span.index}.outer, level=loop)",
        )
    for name in _names(span):
        if not all(_steady(end, name, tilings[name].tile) for end in (span.low, span.high)):
            raise KernelError(
                f"`{span.index}` runs over a part of its range that is not the same in a tile of `{name}`",
                place=span.place,
                hint=f"tile({name}, size=1) and place({name}.outer, level=grid)",
            )
    whole = own.range.high
    low, high = (_reach(end, tilings) for end in (span.low, span.high))
    if low is None or high is None or low[0] < 0 or not _covers(whole, high[1]):
        raise KernelError(
            f"nothing shows that the part of `{span.index}` that `{equation.target}` runs over is a part of its range",
            place=span.place,
            allowed="bounds of indices of known extents, with + * // % of numbers",
        )


def _names(span: Range) -> dict[str, None]:
    ends = (span.low, span.high)
    return dict.fromkeys(n.name for e in ends for n in e.walk() if isinstance(n, Index))


def _covers(extent: Expr, most: float) -> bool:
    return isinstance(extent, Number) and most <= extent.value


def _steady(expr: Expr, index: str, tile: int) -> bool:
    """Whether an expression is the same at all positions of each tile of an index."""
    if tile == 1:
        return True
    match expr:
        case Index(name):
            return name != index
        case Apply("floordiv", (Index(name), Number(by))) if name == index:
            return tile > 0 and by % tile == 0
    return all(_steady(part, index, tile) for part in expr.children())


def _reach(expr: Expr, tilings: Mapping[str, Tiling]) -> tuple[float, float] | None:
    """The least and the greatest value of a bound; None if they are unknown.

    The greatest value is infinite if it depends on a symbolic size.
    """
    match expr:
        case Number():
            return expr.value, expr.value
        case Index(name):
            high = tilings[name].range.high
            return 0, (high.value - 1 if isinstance(high, Number) else inf)
        case Apply(function, (first, Number() as second)):
            ends = _reach(first, tilings)
            return _applied(function, ends, second.value) if ends else None
    return None


def _applied(function: str, ends: tuple[float, float], by: float) -> tuple[float, float] | None:
    low, high = ends
    match function:
        case "add":
            return low + by, high + by
        case "sub":
            return low - by, high - by
        case "mul" if by > 0:
            return low * by, high * by
        case "floordiv" if by > 0:
            return low // by, (high // by if high < inf else inf)
        case "mod" if by > 0:
            return (low, high) if 0 <= low and high < by else (0, by - 1)
    return None


def _whole(span: Range) -> Limit:
    return Limit(span.low, span.high)


def _cut(
    equation: Equation, spec: Spec, decision: Decision, span: Limit, tilings: Mapping[str, Tiling]
) -> Limit:
    """Shortens a loop to a causal bound.

    before: for n in all tiles of N: mx = max(where(n <= m, f, -inf), n)
    after:  for n in the tiles below minimum(N, origin of m + tile of m): the same

    Legal if the body is the identity element of the reduction for all n on one side of m + c, as
    its masks show (`borders`). The tightest such c is used. A lower bound is rounded down to a
    whole tile of n.
    """
    index, at = decision.subject, str(decision.option("at"))
    identity = IDENTITY_ELEMENTS.get(equation.reduce.reduction)
    low = high = None
    for offset in borders(spec, equation.reduce.body, index, at):
        above, below = (
            beyond(spec, equation.reduce.body, index, at, offset, side) == identity
            for side in ("above", "below")
        )
        high = offset if above and high is None else high
        low = offset if below else low
    if identity is None or tilings[at].tile == 0 or (low is None and high is None):
        raise KernelError(
            f"the loop of `{equation.target}` over `{index}` is not cut short at `{at}`: nothing "
            f"shows that its body is {identity} on one side of `{at}`",
            place=decision.place,
            allowed=f"bodies such as where({index} <= {at}, ..., -inf) in a maximum, and "
            "exp(... - maximum) of them in a sum",
            hint=f"drop causal_bound({index}, at={at})",
        )
    origin, tile = Index(at), tilings[index].tile
    if high is not None:
        end = fold_constants("add", origin, fold_constants("add", Number(tilings[at].tile), high))
        span = replace(span, high=Apply("minimum", (span.high, end)))
    if low is not None:
        first = Apply("maximum", (fold_constants("add", origin, low), Number(0)))
        first = Apply("mul", (Apply("floordiv", (first, Number(tile))), Number(tile)))
        start = first if span.low == Number(0) else Apply("maximum", (span.low, first))
        span = replace(span, low=start)
    return span
