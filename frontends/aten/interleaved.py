"""Transposed convolutions without zeros: results apart by the stride are ordinary convolutions.

Along one dimension `y[p] = sum(x[q] * w[k])` over all `q * s + k = p + low`. With
`p + low = u * s + r` that is `k = r + j * s`, `q = u - j`: for each of the s remainders r a
convolution of x with every s-th element of the weight. All of them are one sum over j for [u, r],
which lies in memory as p + low does, and takes as many products as there are; zeros between
elements of x would make them s times as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontends.expressions import constant, minus, plus, quotient, times
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class Way:
    """One dimension."""

    stride: int  # 1 where results are not split
    taps: int  # how many j
    spread: int  # how far they lie apart in x
    low: int  # how far results begin before the first one
    size: Expr  # of the results
    kernel: int  # of the weight

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The sizes of u and r; of u alone where the stride is 1."""
        if self.stride == 1:
            return (self.size,)
        return (self.count, Number(self.stride))

    @property
    def count(self) -> Expr:
        """The values of u."""
        last = plus(self.size, Number(self.low + self.stride - 1))
        return quotient(last, Number(self.stride))

    @property
    def whole(self) -> Expr:
        """The size of [u, r] as one dimension."""
        return self.size if self.stride == 1 else times(self.count, Number(self.stride))

    @property
    def first(self) -> int:
        """Where in [u, r] the first result lies."""
        return 0 if self.stride == 1 else self.low

    def read(self, at: Sequence[Expr], j: Expr) -> tuple[Expr, Expr]:
        """The positions in x and in the weight of tap j, counted from the last one."""
        u, *rest = at
        last = self.taps - 1
        back = last * self.spread - (self.low if self.stride == 1 else 0)
        x = plus(u, times(j, Number(self.spread)))
        x = minus(x, Number(back)) if back >= 0 else plus(x, Number(-back))
        k = minus(Number(last), j) if last else Number(0)
        if rest:
            k = plus(times(k, Number(self.stride)), rest[0])
        return x, k

    @property
    def leaves(self) -> bool:
        """Whether a tap may lie outside of the weight."""
        return self.stride > 1 and self.kernel % self.stride != 0

    @property
    def exact(self) -> bool:
        """Whether [u, r] are the results, and no more."""
        return self.stride == 1 or (
            self.low == 0
            and constant(self.whole) is not None
            and constant(self.whole) == constant(self.size)
        )


def way(size: Expr, kernel: Expr, stride: int, dilation: int, low: int) -> Way:
    """A dimension. size: of the results."""
    length = int(constant(kernel) or 0)
    if stride == 1:
        return Way(1, length, dilation, low, size, length)
    return Way(stride, -(-length // stride), 1, low, size, length)
