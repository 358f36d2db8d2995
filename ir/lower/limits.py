"""Loop limits: reductions that run over a part of their index's range (causal bounds, parts of
split-K)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ir.affine import fold
from ir.errors import KernelError
from ir.formulation.masks import beyond, borders
from ir.functions import IDENTITY
from ir.lower.cuts import Cut
from ir.schedule import Decision, Schedule
from ir.spec import Apply, Equation, Expr, Index, Number, Range, Reduce, Spec

NEUTRAL = {fold: float(value) for fold, value in IDENTITY.items()}  # as accumulators hold it


@dataclass(frozen=True, slots=True)
class Limit:
    """The bounds of a loop; an `Index` in them is the origin of its tile."""

    low: Expr
    high: Expr  # exclusive


def limits(
    equation: Equation, spec: Spec, schedule: Schedule, cuts: Mapping[str, Cut]
) -> Mapping[str, Limit]:
    """The limits of a reduction's loops, by index, where they differ from the whole range: from
    parts of a split, and from `cut`."""
    value = equation.value
    found = value.ranges if isinstance(value, Reduce) else ()
    limited = {r.index: Limit(r.low, r.high) for r in found if r.partial}
    for decision in schedule.of("cut"):
        index = decision.subject
        if index in equation.reduced:
            span = limited.get(index, _whole(cuts[index].range))
            limited[index] = _cut(equation, spec, decision, span, cuts)
    return limited


def _whole(span: Range) -> Limit:
    return Limit(span.low, span.high)


def _cut(
    equation: Equation, spec: Spec, decision: Decision, span: Limit, cuts: Mapping[str, Cut]
) -> Limit:
    """before: for n in all tiles of N: mx = max(where(n <= m, f, -inf), n)
    after:  for n in the tiles below minimum(N, origin of m + tile of m): the same

    A causal loop bound. Legal where the body is the identity element of the reduction for all n on
    one side of m + c, as its masks show (`borders`); the tightest such c is used. A lower bound is
    rounded down to a whole tile of n.
    """
    index, at = decision.subject, str(decision.option("at"))
    neutral = NEUTRAL.get(equation.value.fold)
    low = high = None
    for offset in borders(spec, equation.value.body, index, at):
        above, below = (
            beyond(spec, equation.value.body, index, at, offset, side) == neutral
            for side in ("above", "below")
        )
        high = offset if above and high is None else high
        low = offset if below else low
    if neutral is None or cuts[at].tile == 0 or (low is None and high is None):
        raise KernelError(
            f"the loop of `{equation.target}` over `{index}` is not cut short at `{at}`: nothing "
            f"shows that its body is {neutral} on one side of `{at}`",
            place=decision.place,
            allowed=f"bodies such as where({index} <= {at}, ..., -inf) in a maximum, and "
            "exp(... - maximum) of them in a sum",
            hint=f"drop cut({index}, at={at})",
        )
    origin, tile = Index(at), cuts[index].tile
    if high is not None:
        end = fold("add", origin, fold("add", Number(cuts[at].tile), high))
        span = replace(span, high=Apply("minimum", (span.high, end)))
    if low is not None:
        first = Apply("maximum", (fold("add", origin, low), Number(0)))
        first = Apply("mul", (Apply("floordiv", (first, Number(tile))), Number(tile)))
        start = first if span.low == Number(0) else Apply("maximum", (span.low, first))
        span = replace(span, low=start)
    return span
