"""Unfolding: windows of images as columns, and columns added back to an image."""

from __future__ import annotations

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import both, call, minus, plus, quotient, times, where
from frontends.windows import Lengths, lengths, runs, taps
from ir.spec import Expr, Number


class _Columns:
    """Windows over the last two dimensions, of sizes [H, W]."""

    def __init__(
        self,
        sizes: tuple[Expr, ...],
        kernel: Lengths,
        dilation: Lengths,
        padding: Lengths,
        stride: Lengths,
    ) -> None:
        self.kernel, self.stride = lengths(kernel, 2), lengths(stride, 2)
        self.dilation, self.low = lengths(dilation, 2), lengths(padding, 2)
        self.counts = tuple(map(self._count, sizes, range(2)))

    def _count(self, size: Expr, n: int) -> Expr:
        """How many windows there are along a dimension."""
        span = (self.kernel[n] - 1) * self.dilation[n] + 1
        room = plus(minus(size, Number(span)), Number(2 * self.low[n]))
        return plus(quotient(room, Number(self.stride[n])), Number(1))

    def shape(self, lead: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """[N, C, KH, KW, P, Q]"""
        return (*lead, *map(Number, self.kernel), *self.counts)


@rule("im2col")
def im2col(
    b: Builder,
    out: Meta,
    self: Value,
    kernel_size: Lengths,
    dilation: Lengths,
    padding: Lengths,
    stride: Lengths,
) -> Value:
    c = _Columns(self.shape[-2:], kernel_size, dilation, padding, stride)
    pad = 0.0 if any(c.low) else None

    def body(*at: Expr) -> Expr:
        *lead, i, j, p, q = at
        window = [k if s > 1 else Number(0) for k, s in zip((i, j), c.kernel, strict=True)]
        return self.at(*lead, *taps((p, q), window, c.stride, c.dilation, c.low), pad=pad)

    columns = b.define(Meta(out.dtype, c.shape(self.shape[:-2])), body, "columns")
    return b.reshape(columns, out.shape)


@rule("col2im")
def col2im(
    b: Builder,
    out: Meta,
    self: Value,
    output_size: object,
    kernel_size: Lengths,
    dilation: Lengths,
    padding: Lengths,
    stride: Lengths,
) -> Value:
    """Each element sums the windows in which it is."""
    c = _Columns(out.shape[-2:], kernel_size, dilation, padding, stride)
    columns = b.reshape(self, c.shape(out.shape[:-2]))
    over, spread = runs(c.kernel)
    lead = len(out.shape) - 2

    def body(*at: Expr) -> Expr:
        window = spread(*at[lead + 2 :])
        places, held = [], []
        for n, (x, k) in enumerate(zip(at[lead : lead + 2], window, strict=True)):
            from_start = minus(plus(x, Number(c.low[n])), times(k, Number(c.dilation[n])))
            places.append(quotient(from_start, Number(c.stride[n])))
            if c.stride[n] > 1:
                held.append(call("eq", from_start % c.stride[n], 0))
        read = columns.wide(*at[:lead], *window, *places, pad=0.0)
        return where(both(*held), read, 0.0) if held else read

    return b.reduce("sum", out, over, body, "image")
