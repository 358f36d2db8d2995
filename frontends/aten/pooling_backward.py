"""Gradients of mean pooling: each element sums what the windows over it pass on."""

from __future__ import annotations

from frontends.aten.pooling import held_by, part
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed
from frontends.expressions import both, call, cast, minus, plus, quotient, where
from frontends.windows import Lengths, lengths, runs
from ir.spec import Expr, Number


@rule("avg_pool2d_backward")
def avg_pool_backward(
    b: Builder,
    out: Meta,
    grad_output: Value,
    self: Value,
    kernel_size: Lengths,
    stride: Lengths,
    padding: Lengths,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    count: int = 2,
) -> Value:
    kernel, low = lengths(kernel_size, count), lengths(padding, count)
    steps = lengths(stride, count, kernel)
    lead, dtype = self.rank - count, computed(out.dtype)

    def share(*at: Expr) -> Expr:
        if divisor_override is not None:
            return grad_output.wide(*at) / divisor_override
        held = held_by(at[lead:], kernel, steps, low, self.shape[lead:], count_include_pad)
        return grad_output.wide(*at) / cast(dtype, held)

    shares = b.define(Meta(dtype, grad_output.shape), share, "share")
    over, spread = runs(kernel)

    def body(*at: Expr) -> Expr:
        places, held = [], []
        window = spread(*at[self.rank :])
        for x, k, p, s in zip(at[lead : self.rank], window, low, steps, strict=True):
            start = minus(plus(x, Number(p)), k)
            places.append(quotient(start, Number(s)))
            if s > 1:
                held.append(call("eq", start % s, 0))
        read = shares.at(*at[:lead], *places, pad=0.0)
        return where(both(*held), read, 0.0) if held else read

    return b.reduce("sum", out, over, body, "grad")


@rule("avg_pool3d_backward")
def avg_pool3d_backward(b: Builder, out: Meta, **given: object) -> Value:
    return avg_pool_backward(b, out, count=3, **given)


def _adaptive(count: int) -> None:
    @rule(f"_adaptive_avg_pool{count}d_backward")
    def adaptive_avg_pool_backward(b: Builder, out: Meta, grad_output: Value, self: Value) -> Value:
        lead, dtype = self.rank - count, computed(out.dtype)
        pairs = tuple(zip(self.shape[lead:], grad_output.shape[lead:], strict=True))

        def share(*at: Expr) -> Expr:
            made = grad_output.wide(*at)
            for place, pair in zip(at[lead:], pairs, strict=True):
                start, end = part(place, *pair)
                made = made / cast(dtype, end - start)
            return made

        shares = b.define(Meta(dtype, grad_output.shape), share, "share")
        over, spread = runs(grad_output.shape[lead:])

        def body(*at: Expr) -> Expr:
            places, held = spread(*at[self.rank :]), []
            for x, place, pair in zip(at[lead : self.rank], places, pairs, strict=True):
                start, end = part(place, *pair)
                held += [call("ge", x, start), call("lt", x, end)]
            return where(both(*held), shares.at(*at[:lead], *places), 0.0)

        return b.reduce("sum", out, over, body, "grad")


_adaptive(2)
_adaptive(3)
