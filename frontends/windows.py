"""Windows: where the taps of a sliding window lie, along one dimension and along several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from frontends.expressions import constant, expr, minus, plus, times
from ir.spec import Expr, Number

Lengths = int | Sequence[int]


def lengths(given: Lengths, count: int, default: Sequence[int] = ()) -> tuple[int, ...]:
    """One number a dimension, from one for all or one for each; `default` where none is given."""
    listed = (given,) if isinstance(given, int) else tuple(given) or tuple(default)
    return listed * count if len(listed) == 1 else listed


def tap(place: Expr, k: Expr, stride: int, dilation: int, low: int) -> Expr:
    """The position of tap k in the window at a place: `place * stride + k * dilation - low`."""
    at = plus(times(place, Number(stride)), times(k, Number(dilation)))
    return minus(at, Number(low)) if low >= 0 else plus(at, Number(-low))


def taps(
    places: Sequence[Expr],
    window: Sequence[Expr],
    stride: Sequence[int],
    dilation: Sequence[int],
    low: Sequence[int],
) -> tuple[Expr, ...]:
    """`tap` of each dimension. low: how far the first window begins before the first element."""
    given = zip(places, window, stride, dilation, low, strict=True)
    return tuple(tap(*one) for one in given)


def runs(sizes: Sequence[Expr | int]) -> tuple[tuple[Expr, ...], Callable[..., tuple[Expr, ...]]]:
    """The sizes that are not 1, and what makes a position along each size of those along these."""
    whole = tuple(map(expr, sizes))
    long = tuple(s for s in whole if constant(s) != 1)

    def spread(*at: Expr) -> tuple[Expr, ...]:
        given = iter(at)
        return tuple(Number(0) if constant(s) == 1 else next(given) for s in whole)

    return long, spread
