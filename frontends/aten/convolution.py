"""Convolutions: sums of products of a weight with windows, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from frontends.aten.contraction import wider
from frontends.aten.interleaved import Way, phase, way
from frontends.aten.table import rule
from frontends.axes import reduce
from frontends.builder import Builder, Meta, Value
from frontends.expressions import both, call, constant, minus, plus, quotient, times, where
from frontends.windows import Lengths, lengths, runs, taps
from ir.spec import Expr, Number

SUM = "convolution"  # what the sum of products of a convolution is called
Weigh = Callable[..., Expr]  # of the group, the channel of the result in it, that of x, the taps


@dataclass(frozen=True, slots=True)
class Slide:
    """How windows lie, along each spatial dimension."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]  # how far the first begins before x
    inside: bool  # whether none leaves x

    def at(self, places: Sequence[Expr], window: Sequence[Expr]) -> tuple[Expr, ...]:
        return taps(places, window, self.stride, self.dilation, self.low)

    def read(self, x: Value, *at: Expr) -> Expr:
        return x.wide(*at, pad=None if self.inside else 0.0)


def _slide(stride: Lengths, padding: Lengths, dilation: Lengths, count: int) -> Slide:
    low = lengths(padding, count)
    return Slide(lengths(stride, count), lengths(dilation, count), low, not any(low))


def correlate(
    b: Builder,
    out: Meta,
    x: Value,
    weigh: Weigh,
    kernel: Sequence[Expr],
    slide: Slide,
    groups: int,
) -> Value:
    """`y[n, o, p] = sum(x[n, c, p * stride + k * dilation - low] * w[o, c, k], c, k)`; with groups
    each o has channels of its own, and the sum is one of [N, G, O / G, ...]."""
    own = quotient(x.shape[1], Number(groups))
    each = quotient(out.shape[1], Number(groups))
    over, spread = runs((own, *kernel))
    rank = len(kernel)

    def product(n: Expr, g: Expr, o: Expr, at: Sequence[Expr], reduced: Sequence[Expr]) -> Expr:
        c, *window = spread(*reduced)
        read = slide.read(x, n, plus(times(g, own), c), *slide.at(at, window))
        return read * weigh(g, o, c, *window)

    if groups == 1 or constant(each) == 1:
        alone = groups == 1

        def plain(n: Expr, o: Expr, *at: Expr) -> Expr:
            g, o = (Number(0), o) if alone else (o, Number(0))
            return product(n, g, o, at[:rank], at[rank:])

        return b.reduce("sum", out, over, plain, SUM)

    def grouped(n: Expr, g: Expr, o: Expr, *at: Expr) -> Expr:
        return product(n, g, o, at[:rank], at[rank:])

    split = Meta(out.dtype, (out.shape[0], Number(groups), each, *out.shape[2:]))
    return b.reshape(b.reduce("sum", split, over, grouped, SUM), out.shape)


def ordinary(b: Builder, out: Meta, x: Value, weight: Value, slide: Slide, groups: int) -> Value:
    """weight: [O, C / G, ...]"""
    each = quotient(out.shape[1], Number(groups))

    def weigh(g: Expr, o: Expr, *at: Expr) -> Expr:
        return weight.wide(plus(times(g, each), o), *at)

    return correlate(b, out, x, weigh, weight.shape[2:], slide, groups)


def transposed(b: Builder, out: Meta, x: Value, weight: Value, slide: Slide, groups: int) -> Value:
    """What an ordinary convolution with this weight [C, O / G, ...] would make x of, summed back:
    an ordinary convolution for each phase of results, all of them as one with more channels; see
    `frontends/aten/interleaved.py`. Where that cannot be, x has zeros between its elements."""
    given = zip(
        out.shape[2:], weight.shape[2:], slide.stride, slide.dilation, slide.low, strict=True
    )
    ways = [way(n, k, s if d == 1 else 1, d, low) for n, k, s, d, low in given]
    x = _spaced(b, x, [s // w.stride for s, w in zip(slide.stride, ways, strict=True)])
    each = quotient(out.shape[1], Number(groups))
    count = prod(w.stride for w in ways)
    spreads, low = tuple(w.spread for w in ways), tuple(w.low for w in ways)
    there = Slide((1,) * len(ways), spreads, low, False)
    taps = tuple(Number(w.taps) for w in ways)
    pad = 0.0 if any(w.leaves for w in ways) else None
    own = quotient(x.shape[1], Number(groups))

    strides = (Number(w.stride) for w in ways)

    def filters(g: Expr, *at: Expr) -> Expr:
        phase, (o, *js, c) = at[: len(ways)], at[len(ways) :]
        places = (w.weight(r, j) for w, r, j in zip(ways, phase, js, strict=True))
        return weight.at(plus(times(g, own), c), o, *places, pad=pad)

    # In the order in which windows run, channels last: so that both run along memory.
    meta = Meta(weight.dtype, (Number(groups), *strides, each, *taps, own))
    channels = times(out.shape[1], Number(count))
    phased = b.reshape(b.define(meta, filters, "phased"), (channels, *taps, own))

    def weigh(g: Expr, o: Expr, c: Expr, *js: Expr) -> Expr:
        return phased.wide(plus(times(g, times(each, Number(count))), o), *js, c)

    meta = Meta(out.dtype, (out.shape[0], channels, *(w.count for w in ways)))
    made = correlate(b, meta, x, weigh, taps, there, groups)
    if count == 1:
        return made

    def result(n: Expr, o: Expr, *at: Expr) -> Expr:
        places, found = zip(*map(Way.found, ways, at), strict=True)
        first = phase(ways, found)
        if groups > 1:
            first = plus(o // each * count, first)
        return made.at(n, plus(times(first, each), o % each if groups > 1 else o), *places)

    return b.define(out, result, "interleaved")


def _spaced(b: Builder, x: Value, stride: Sequence[int]) -> Value:
    """x with `stride - 1` zeros between elements."""
    if all(s == 1 for s in stride):
        return x
    sizes = tuple(
        plus(times(minus(size, Number(1)), Number(s)), Number(1))
        for size, s in zip(x.shape[2:], stride, strict=True)
    )

    def body(n: Expr, c: Expr, *at: Expr) -> Expr:
        wide = [(i, s) for i, s in zip(at, stride, strict=True) if s != 1]
        held = both(*(call("eq", i % s, 0) for i, s in wide))
        source = [i if s == 1 else i // s for i, s in zip(at, stride, strict=True)]
        return where(held, x.at(n, c, *source), 0)

    return b.define(Meta(x.dtype, (*x.shape[:2], *sizes)), body, "spaced")


@rule("convolution", "_convolution")
def convolution(
    b: Builder,
    out: Meta,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Lengths,
    padding: Lengths,
    dilation: Lengths,
    transposed: bool,
    output_padding: Lengths,
    groups: int,
    **_: object,
) -> Value:
    """Of one to three spatial dimensions. What output_padding adds shows in the result's sizes."""
    slide = _slide(stride, padding, dilation, input.rank - 2)
    meta = wider(out) if bias else out
    make = _TRANSPOSED if transposed else ordinary
    made = make(b, meta, input, weight, slide, groups)
    if bias is None:
        return made
    return b.define(out, lambda n, c, *at: made.at(n, c, *at) + bias.wide(c), "biased")


_TRANSPOSED = transposed  # which the rule's argument hides


@rule("convolution_backward")
def convolution_backward(
    b: Builder,
    out: Sequence[Meta | None],
    grad_output: Value,
    input: Value,
    weight: Value,
    bias_sizes: Sequence[Expr | int] | None,
    stride: Lengths,
    padding: Lengths,
    dilation: Lengths,
    transposed: bool,
    output_padding: Lengths,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Value | None, Value | None, Value | None]:
    slide = _slide(stride, padding, dilation, input.rank - 2)
    first = second = third = None
    if output_mask[0]:
        make = ordinary if transposed else _TRANSPOSED
        first = make(b, out[0], grad_output, weight, slide, groups)
    if output_mask[1]:
        few, many = (input, grad_output) if transposed else (grad_output, input)
        second = _weight_gradient(b, out[1], few, many, slide, groups)
    if output_mask[2]:
        dims = (0, *range(2, grad_output.rank))
        third = reduce(b, "sum", out[2], grad_output, dims, grad_output.wide, "grad")
    return first, second, third


def _weight_gradient(
    b: Builder, out: Meta, few: Value, many: Value, slide: Slide, groups: int
) -> Value:
    """`w[o, c, k] = sum(few[n, o, p] * many[n, c, p * stride + k * dilation - low], n, p)`."""
    each, own = quotient(out.shape[0], Number(groups)), out.shape[1]
    over, spread = runs((few.shape[0], *few.shape[2:]))
    window = len(out.shape) - 2

    def body(g: Expr, o: Expr, c: Expr, *at: Expr) -> Expr:
        n, *places = spread(*at[window:])
        read = slide.read(many, n, plus(times(g, own), c), *slide.at(places, at[:window]))
        return few.wide(n, plus(times(g, each), o), *places) * read

    if groups == 1:
        return b.reduce("sum", out, over, lambda *at: body(Number(0), *at), "grad")
    split = Meta(out.dtype, (Number(groups), each, *out.shape[1:]))
    return b.reshape(b.reduce("sum", split, over, body, "grad"), out.shape)
