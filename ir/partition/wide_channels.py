"""Pads the channels of f32 convolutions with few of them, such as three, to the vector width.

before: y[b, o, i, j] = sum(pad(x[b, c, i + r - 1, j + s - 1], 0.0) * w[o, c, r, s], c=3, r=3, s=3)
after:  x_wide[b, i, j, c] = pad(x[b, c, i, j], 0.0)        where c runs to 4
        w_wide[o, r, s, c] = pad(w[o, c, r, s], 0.0)
        y[b, o, i, j] = sum(pad(x_wide[b, i + r - 1, j + s - 1, c], 0.0) * w_wide[o, r, s, c], r=3, s=3, c=4)

A thread then loads all channels of a pixel with one aligned vector load, and computes one address
for them. The added channels are zeros. Filters are fixed, so their copies are constants.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from ir.contraction import indices
from ir.partition.channels_last import convolution_parts
from ir.partition.views import fresh
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Index, Number, Range, Read, Spec
from ir.verify import facts
from ir.visit import rebuilt

VECTOR = 4  # channels that one load reads
# number of channels from which on they fill the K dimension of a matmul without filter taps
FEW = 16
MOST_ADDED = 1 / 3  # of the channels
# AT_ONCE: terms that a matrix instruction takes at once, so that nothing is gained. LEAST_OUT:
# output channels above which a convolution takes much longer than the copy. On an H200 three
# convolutions with 16 output channels in f32 took 549, 509 and 1994 us without copies, and 701, 683
# and 2233 us with them. One with 64 took 2548 and 1776 us; one with 96 in TF32 took 1408 and 1629
# us.
AT_ONCE, LEAST_OUT = 32, 24


def with_wide_channels(spec: Spec, fixed: Collection[str], rounded: Collection[str] = ()) -> Spec:
    """Lets the convolutions of a literal spec that have few channels read padded copies.

    fixed: inputs that do not change between calls.
    rounded: convolutions whose operands may be rounded to TF32. They stay: each is one matmul and
        not three, so copies and padding cost a larger share of its time than they save.
    """
    made: list[Equation] = []
    taken = {t.name for t in spec.inputs} | {e.target for e in spec.equations}
    copies: dict[tuple[str, int], str] = {}
    for e in spec.equations:
        parts = convolution_parts(e) if e.target not in rounded else None
        wide = _wide(spec, e, *parts, fixed) if parts else None
        made += [e] if wide is None else wide.equations(taken, copies)
    return replace(spec, equations=tuple(made))


class _Wide:
    """A convolution to rewrite.

    x: the read of its image.
    w: the read of its filter.
    taps: the indices of filter taps, in the order of x.
    channel: the index over channels.
    width: the padded number of channels.
    """

    def __init__(
        self, spec: Spec, e: Equation, x: Read, w: Read, taps: tuple[str, ...], channel: str
    ):
        self.spec, self.e, self.x, self.w, self.taps, self.channel = spec, e, x, w, taps, channel
        self.width = -(-_extent(spec, channel) // VECTOR) * VECTOR

    def equations(self, taken: set[str], copies: dict[tuple[str, int], str]) -> list[Equation]:
        """The copies that do not exist yet, and the convolution that reads them."""
        dim = self.x.at.index(Index(self.channel))
        order = (*(d for d in range(len(self.x.at)) if d != dim), dim)
        outs = [d for d, p in enumerate(self.w.at) if p == Index(self.channel)]
        named = {d: i for d, p in enumerate(self.w.at) for i in indices(p) if i in self.taps}
        # The filter's taps in their order in the image.
        beside = sorted(
            (d for d in range(len(self.w.at)) if d not in outs),
            key=lambda d: self.taps.index(named[d]) if d in named else -1,
        )
        made, reads = [], {}
        for read, dims in ((self.x, order), (self.w, (*beside, *outs))):
            key = (read.tensor, dims[-1])
            if key not in copies:
                copies[key] = fresh(f"{read.tensor}_wide", taken)
                made.append(self._copy(copies[key], read.tensor, dims))
            at = tuple(read.at[d] for d in dims)
            reads[read] = replace(read, tensor=copies[key], at=at)

        def over(part: Expr) -> Expr:
            return reads[part] if isinstance(part, Read) and part in reads else rebuilt(part, over)

        reduce = self.e.reduce
        wide = Range(self.channel, Number(0), Number(self.width))
        ranges = tuple(wide if r.index == self.channel else r for r in reduce.ranges)
        value = replace(
            reduce, body=over(reduce.body), over=(*self.taps, self.channel), ranges=ranges
        )
        return [*made, replace(self.e, value=value)]

    def _copy(self, name: str, tensor: str, dims: tuple[int, ...]) -> Equation:
        """A copy of a tensor with its channels last, and padded."""
        known = facts(self.spec).tensors[tensor]
        at = tuple(Index(f"{name}_{d}") for d in range(len(dims)))
        sizes = (*(known.shape[d] for d in dims[:-1]), Number(self.width))
        # A plain padded read would count as a view and be inlined into the convolution again.
        there = Apply("lt", (at[dims[-1]], known.shape[dims[-1]]))
        value = Apply("where", (there, Read(tensor, at, pad=0.0), Number(0.0)))
        return Equation(name, tuple(at[d] for d in dims), value, sizes=sizes)


def _wide(
    spec: Spec, e: Equation, x: Read, w: Read, taps: set[str], fixed: Collection[str]
) -> _Wide | None:
    """The convolution to rewrite; None if it does not have few channels that fill no vector."""
    channels = [i for i in e.reduced if i not in taps]
    if len(channels) != 1 or w.tensor not in fixed:
        return None
    (channel,) = channels
    known, count = facts(spec).tensors, _extent(spec, channel)
    added = -count % VECTOR
    plain = all(read.at.count(Index(channel)) == 1 for read in (x, w))
    whole = all(
        number(known[r.tensor].shape[r.at.index(Index(channel))], {}) == count
        for r in ((x, w) if plain else ())
    )
    rows = [n for n, p in enumerate(w.at) if isinstance(p, Index) and p.name in e.indices]
    outs = number(known[w.tensor].shape[rows[0]], {}) if len(rows) == 1 else 0
    steps = [_extent(spec, i) for i in taps]
    if not plain or not whole or count >= FEW or not 0 < added <= MOST_ADDED * count:
        return None
    if outs < LEAST_OUT or count * prod(steps) <= AT_ONCE or known[x.tensor].dtype != "f32":
        return None
    moved = tuple(i for p in x.at for i in indices(p) if i in taps)
    return _Wide(spec, e, x, w, moved, channel) if len(moved) == len(taps) else None


def _extent(spec: Spec, index: str) -> int:
    return number(facts(spec).ranges[index].high, {})
