"""Pooling: the largest or the mean element of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value, computed, linear, unravelled
from frontends.expressions import (
    both,
    call,
    cast,
    constant,
    minus,
    plus,
    product,
    quotient,
    times,
    where,
)
from frontends.windows import Lengths, lengths, runs, taps
from ir.dtypes import is_float
from ir.spec import Expr, Number

_LOWEST = {"i64": -(2**63), "i32": -(2**31), "i16": -(2**15), "i8": -128, "u8": 0}


class _Maxima:
    """Maxima of windows over the last dimensions of x, and where they are."""

    def __init__(
        self,
        x: Value,
        kernel: Lengths,
        stride: Lengths,
        padding: Lengths,
        dilation: Lengths,
        ceil_mode: bool,
        count: int,
    ) -> None:
        self.x, self.count, self.lead = x, count, x.rank - count
        self.kernel = lengths(kernel, count)
        self.how = (
            lengths(stride, count, self.kernel),
            lengths(dilation, count),
            lengths(padding, count),
        )
        self.over, self.spread = runs(self.kernel)
        leaves = any(self.how[2]) or ceil_mode
        self.pad = _LOWEST.get(x.dtype, -float("inf")) if leaves else None

    def element(self, *at: Expr) -> Expr:
        places, window = at[self.lead : self.x.rank], self.spread(*at[self.x.rank :])
        return self.x.wide(*at[: self.lead], *taps(places, window, *self.how), pad=self.pad)

    def values(self, b: Builder, out: Meta) -> Value:
        return b.reduce("max", out, self.over, self.element, "max_pool")

    def places(self, b: Builder, out: Meta, values: Value) -> Value:
        """Of each maximum its place among the elements of the last dimensions."""
        sizes = tuple(map(Number, self.kernel))
        nth = _nth(b, values, self.over, self.element)

        def body(*at: Expr) -> Expr:
            window = unravelled(nth.at(*at), sizes)
            source = taps(at[self.lead :], window, *self.how)
            inside = map(self._inside, source, self.how[1])
            return cast("i64", linear(tuple(inside), self.x.shape[self.lead :]))

        return b.define(out, body, "places")

    def _inside(self, position: Expr, dilation: int) -> Expr:
        """Where all elements of a window equal what it is padded with, its first tap is found,
        which may lie in the padding: the first element of the window instead."""
        if self.pad is None:
            return position
        if dilation == 1:
            return call("maximum", position, 0)
        return where(position < 0, position % dilation, position)


def _nth(b: Builder, values: Value, over: Sequence[Expr], element: Callable[..., Expr]) -> Value:
    """Of each maximum which tap of its window it is: the first, or as in PyTorch the last NaN."""
    meta, count = Meta("i32", values.shape), product(tuple(over))
    if not over:
        return b.define(meta, lambda *at: 0, "tap")

    def order(*at: Expr) -> Expr:
        own, place = at[: values.rank], linear(at[values.rank :], tuple(over))
        found = where(call("eq", element(*at), values.wide(*own)), minus(count, place), 0)
        if not is_float(values.dtype):
            return found
        return where(call("isnan", element(*at)), plus(plus(count, place), Number(1)), found)

    best = b.reduce("max", meta, over, order, "order")

    def tap(*at: Expr) -> Expr:
        found = best.at(*at)
        return where(found > count, minus(minus(found, count), Number(1)), minus(count, found))

    return b.define(meta, tap, "tap")


def _max_pools(count: int) -> None:
    def maxima(self, kernel_size, stride, padding, dilation, ceil_mode) -> _Maxima:
        return _Maxima(self, kernel_size, stride, padding, dilation, ceil_mode, count)

    @rule(f"max_pool{count}d")
    def max_pool(
        b: Builder,
        out: Meta,
        self: Value,
        kernel_size: Lengths,
        stride: Lengths = (),
        padding: Lengths = 0,
        dilation: Lengths = 1,
        ceil_mode: bool = False,
    ) -> Value:
        return maxima(self, kernel_size, stride, padding, dilation, ceil_mode).values(b, out)

    @rule(f"max_pool{count}d_with_indices")
    def max_pool_with_indices(
        b: Builder,
        out: Sequence[Meta],
        self: Value,
        kernel_size: Lengths,
        stride: Lengths = (),
        padding: Lengths = 0,
        dilation: Lengths = 1,
        ceil_mode: bool = False,
    ) -> tuple[Value, Value]:
        found = maxima(self, kernel_size, stride, padding, dilation, ceil_mode)
        values = found.values(b, out[0])
        return values, found.places(b, out[1], values)

    def max_pool_backward(
        b: Builder,
        out: Meta,
        grad_output: Value,
        self: Value,
        kernel_size: Lengths,
        stride: Lengths,
        padding: Lengths,
        dilation: Lengths,
        ceil_mode: bool,
        indices: Value,
    ) -> Value:
        """Each gradient is added where its maximum was."""
        lead = self.shape[: self.rank - count]
        flat = Meta(computed(out.dtype), (*lead, product(self.shape[self.rank - count :])))
        made = b.scatter(
            flat,
            grad_output.shape,
            lambda *at: (*at[: len(lead)], indices.at(*at)),
            grad_output.wide,
            "grad",
        )
        whole = b.reshape(b.copy(made, "grad"), out.shape)  # the copy's indices give it its sizes
        return whole if flat.dtype == out.dtype else b.define(out, whole.at, "grad")

    if count > 1:  # of one dimension it is that of two
        rule(f"max_pool{count}d_with_indices_backward")(max_pool_backward)


def _avg_pools(count: int) -> None:
    @rule(f"avg_pool{count}d")
    def avg_pool(
        b: Builder,
        out: Meta,
        self: Value,
        kernel_size: Lengths,
        stride: Lengths = (),
        padding: Lengths = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        kernel, low = lengths(kernel_size, count), lengths(padding, count)
        how = (lengths(stride, count, kernel), (1,) * count, low)
        over, spread = runs(kernel)
        lead, dtype = self.rank - count, computed(out.dtype)
        pad = 0.0 if any(low) or ceil_mode else None

        def element(*at: Expr) -> Expr:
            places = taps(at[lead : self.rank], spread(*at[self.rank :]), *how)
            return self.wide(*at[:lead], *places, pad=pad)

        total = b.reduce("sum", Meta(dtype, out.shape), over, element, "total")

        def mean(*at: Expr) -> Expr:
            if divisor_override is not None:
                return total.at(*at) / divisor_override
            if pad is None or (count_include_pad and not ceil_mode):
                return total.at(*at) / product(tuple(map(Number, kernel)))
            sizes = self.shape[lead:]
            held = held_by(at[lead:], kernel, how[0], low, sizes, count_include_pad)
            return total.at(*at) / cast(dtype, held)

        return b.define(out, mean, "avg_pool")


def held_by(
    places: Sequence[Expr],
    kernel: Sequence[int],
    stride: Sequence[int],
    low: Sequence[int],
    sizes: Sequence[Expr],
    padded: bool,
) -> Expr:
    """How many elements a window has; padded: with those that it is padded with."""
    nothing, ones = (Number(0),) * len(kernel), (1,) * len(kernel)
    starts = taps(places, nothing, stride, ones, low)
    each = zip(starts, kernel, sizes, low, strict=True)
    return product(tuple(_held(*one, padded) for one in each))


def _held(start: Expr, kernel: int, size: Expr, low: int, padded: bool) -> Expr:
    """How many elements of a window lie in a dimension, or in what it is padded to."""
    if padded:
        return call("minimum", plus(start, Number(kernel)), plus(size, Number(low))) - start
    return call("minimum", plus(start, Number(kernel)), size) - call("maximum", start, 0)


def part(at: Expr, size: Expr, parts: Expr) -> tuple[Expr, Expr]:
    """Where a part of a dimension begins and ends, which need not divide it: parts overlap."""
    end = quotient(plus(times(plus(at, Number(1)), size), minus(parts, Number(1))), parts)
    return quotient(times(at, size), parts), end


def _largest(size: Expr, parts: Expr) -> Expr:
    """The most elements that a part has."""
    whole, count = constant(size), constant(parts)
    if whole is None or count is None:
        return plus(quotient(size, parts), Number(2))
    return Number(max(-(-(n + 1) * whole // count) - n * whole // count for n in range(count)))


class _Parts:
    """Parts of the last dimensions of x, as windows of the largest part's size."""

    def __init__(self, x: Value, out: Meta, count: int) -> None:
        self.x, self.lead = x, x.rank - count
        self.pairs = tuple(zip(x.shape[self.lead :], out.shape[self.lead :], strict=True))
        self.sizes = tuple(_largest(*pair) for pair in self.pairs)
        self.over, self.spread = runs(self.sizes)

    def _even(self, n: int) -> bool:
        size, parts = self.pairs[n]
        known = constant(size), constant(parts)
        if known[0] is None or known[1] is None:
            return False
        return known[0] % known[1] == 0

    def element(self, outside: float, *at: Expr) -> Expr:
        """An element of a part; `outside` where the part is smaller than the window."""
        places, window = at[self.lead : self.x.rank], self.spread(*at[self.x.rank :])
        source, held = [], []
        for n, (p, i) in enumerate(zip(places, window, strict=True)):
            if self._even(n):
                source.append(plus(times(p, self.sizes[n]), i))
                continue
            start, end = part(p, *self.pairs[n])
            source.append(plus(start, i))
            held.append(plus(start, i) < end)
        read = self.x.wide(*at[: self.lead], *source, pad=outside if held else None)
        return where(both(*held), read, outside) if held else read

    def extent(self, *at: Expr) -> Expr:
        """How many elements a part has."""
        found: Expr = Number(1)
        for n, p in enumerate(at[self.lead :]):
            start, end = part(p, *self.pairs[n])
            found = times(found, self.sizes[n] if self._even(n) else end - start)
        return found

    def place(self, nth: Expr, *at: Expr) -> Expr:
        """The place of an element of a part in x, among those of the last dimensions."""
        made: Expr = Number(0)
        for n, i in enumerate(unravelled(nth, self.sizes)):
            size, _ = self.pairs[n]
            start, _ = part(at[self.lead + n], *self.pairs[n])
            made = plus(times(made, size), plus(start, i))
        return made


def _adaptive_pools(count: int) -> None:
    @rule(f"adaptive_avg_pool{count}d", *([f"_adaptive_avg_pool{count}d"] if count > 1 else []))
    def adaptive_avg_pool(b: Builder, out: Meta, self: Value, output_size: object) -> Value:
        parts, dtype = _Parts(self, out, count), computed(out.dtype)
        total = b.reduce(
            "sum", Meta(dtype, out.shape), parts.over, lambda *at: parts.element(0.0, *at), "total"
        )

        def mean(*at: Expr) -> Expr:
            extent = parts.extent(*at)
            return total.at(*at) / (extent if constant(extent) else cast(dtype, extent))

        return b.define(out, mean, "avg_pool")

    @rule(f"adaptive_max_pool{count}d")
    def adaptive_max_pool(
        b: Builder, out: Sequence[Meta], self: Value, output_size: object
    ) -> tuple[Value, Value]:
        parts = _Parts(self, out[0], count)

        def element(*at: Expr) -> Expr:
            return parts.element(-float("inf"), *at)

        values = b.reduce("max", out[0], parts.over, element, "max_pool")
        nth = _nth(b, values, parts.over, element)
        places = b.define(out[1], lambda *at: cast("i64", parts.place(nth.at(*at), *at)), "places")
        return values, places


for _count in (1, 2, 3):
    _max_pools(_count)
    _avg_pools(_count)
    _adaptive_pools(_count)
