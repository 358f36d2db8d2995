"""Transposed convolutions without zeros: results apart by the stride are ordinary convolutions.

Along one dimension `y[p] = sum(x[q] * w[k])` over all `q * s + k = p + low`. With `p + shift = u * s + r`
that is `k = r + low - shift - d * s`, `q = u + d`: for each of the s phases r a convolution of x, at the
same few d, with every s-th element of the weight. So all phases are one ordinary convolution without a
stride, which has s times as many channels in its result, and takes as many products as there are, but
for the taps that some phases lack; zeros between elements of x would make them s times as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontends.expressions import constant, minus, plus, quotient, times
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class Way:
    """One dimension."""

    stride: int  # the number of phases; 1 where results are not split
    taps: int  # how many d
    spread: int  # how far they lie apart in x
    low: int  # how far the first window begins before x
    shift: int  # how far before the first result the first u begins
    first: int  # the element of the weight at tap 0 in phase 0
    kernel: int  # elements of the weight
    size: Expr  # of the results

    @property
    def count(self) -> Expr:
        """The values of u."""
        return quotient(plus(self.size, Number(self.shift + self.stride - 1)), Number(self.stride))

    def weight(self, phase: Expr, tap: Expr) -> Expr:
        """The position in the weight, which may lie outside where `leaves`."""
        step = Number(self.stride)
        top = plus(Number(self.first), phase)
        return top if self.taps == 1 else minus(top, times(tap, step))

    def found(self, place: Expr) -> tuple[Expr, Expr]:
        """The u and the phase of a result."""
        if self.stride == 1:
            return place, Number(0)
        at = plus(place, Number(self.shift))
        return at // self.stride, at % self.stride

    @property
    def leaves(self) -> bool:
        """Whether a tap may lie outside of the weight."""
        highest = self.first + self.stride - 1
        return highest >= self.kernel or self.first < (self.taps - 1) * self.stride


def way(size: Expr, kernel: Expr, stride: int, dilation: int, low: int) -> Way:
    """A dimension. size: of the results. The shift is the least of those with the fewest taps."""
    length = int(constant(kernel) or 0)
    if stride == 1:
        back = (length - 1) * dilation - low
        return Way(1, length, dilation, back, 0, length - 1, length, size)
    ways = [_shifted(size, length, stride, low, shift) for shift in range(stride)]
    return min(ways, key=lambda w: w.taps)


def _shifted(size: Expr, length: int, stride: int, low: int, shift: int) -> Way:
    lead = low - shift  # of the phase 0 over the weight
    least = -((length - 1 - lead) // stride)
    taps = (stride - 1 + lead) // stride - least + 1
    return Way(stride, taps, 1, -least, shift, lead - least * stride, length, size)


def phase(ways: Sequence[Way], each: Sequence[Expr]) -> Expr:
    """The number of the phases of all dimensions."""
    made: Expr = Number(0)
    for w, own in zip(ways, each, strict=True):
        made = plus(times(made, Number(w.stride)), own)
    return made
