"""Loop limits: reductions that run over a part of their index's range (causal bounds, parts of
split-K)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ir.affine import fold_constants
from ir.errors import KernelError
from ir.functions import IDENTITY_ELEMENTS
from ir.lower.launches import Tiling
from ir.schedule import Decision, Schedule
from ir.spec import Apply, Equation, Expr, Index, Number, Range, Reduce, Spec
from ir.variant.masks import beyond, borders


@dataclass(frozen=True, slots=True)
class Limit:
    """The bounds of a loop; an `Index` in them is the origin of its tile."""

    low: Expr
    high: Expr  # exclusive


def limits(
    equation: Equation, spec: Spec, schedule: Schedule, tilings: Mapping[str, Tiling]
) -> Mapping[str, Limit]:
    """The limits of a reduction's loops, by index, where they differ from the whole range: from
    parts of a split, and from `causal_bound`."""
    value = equation.value
    found = value.ranges if isinstance(value, Reduce) else ()
    limited = {r.index: Limit(r.low, r.high) for r in found if r.partial}
    for decision in schedule.of("causal_bound"):
        index = decision.subject
        if index in equation.reduced:
            span = limited.get(index, _whole(tilings[index].range))
            limited[index] = _cut(equation, spec, decision, span, tilings)
    return limited


def _whole(span: Range) -> Limit:
    return Limit(span.low, span.high)


def _cut(
    equation: Equation, spec: Spec, decision: Decision, span: Limit, tilings: Mapping[str, Tiling]
) -> Limit:
    """before: for n in all tiles of N: mx = max(where(n <= m, f, -inf), n)
    after:  for n in the tiles below minimum(N, origin of m + tile of m): the same

    A causal loop bound. Legal where the body is the identity element of the reduction for all n on
    one side of m + c, as its masks show (`borders`); the tightest such c is used. A lower bound is
    rounded down to a whole tile of n.
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
