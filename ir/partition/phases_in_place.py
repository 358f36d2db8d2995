"""Stores the phases of a transposed convolution in place, in the kernel that computes them.

A transposed convolution with a stride is one convolution whose channels contain the phases. A
second kernel would read its result, interleave the phases and compute the epilogue:

before: c[b, q, i, j] = sum(x[b, k, i + r, j + s] * w[q, r, s, k], k, r, s)
        c_phases[b, p, o, i, j] = c[b, p * O + o, i, j]
        y_phases[b, o, i, g, j, h] = tanh(c_phases[b, g * 2 + h, o, i, j])
after:  operand[b, i, j, k] = tf32(x[b, k, i, j]), operand_2[r, s, o, g, h, k] = tf32(w[(g * 2 + h) * O + o, r, s, k])
        c_in_place[b, o, i, g, j, h] = sum(operand[b, i + r, j + s, k] * operand_2[r, s, o, g, h, k], k, r, s)
        y_phases[b, o, i, g, j, h] = tanh(c_in_place[b, o, i, g, j, h])

`c_phases` is a view of `c`, and the whole result is a view of `y_phases` (`ir/partition/periods.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ir.affine import affine
from ir.contraction import indices, product
from ir.partition.channels_last import Window, convolution_parts, window
from ir.partition.periods import with_periods_apart
from ir.partition.views import fresh
from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import Cast, Equation, Expr, Facts, Index, Number, Read, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt, renamed

LINE = 32  # channels of a 128-byte line of TF32; boxes consist of whole lines
MOST_PHASES = 4  # of all dimensions together
TILE = 128  # results of a pixel's phases and channels in a thread block's tile


def with_phases_in_place(
    spec: Spec,
    aliases: Mapping[str, str],
    fixed: Collection[str],
    rounded: Collection[str],
    narrow: str,
) -> tuple[Spec, dict[str, str]]:
    """Rewrites the transposed convolutions of a literal spec; returns the spec and its aliases.

    aliases: by view, the tensor whose memory it shows.
    fixed: tensors that do not change between calls.
    rounded: targets of the sums of products whose operands may be rounded.
    narrow: the dtype that operands are rounded to.
    """
    found = dict(aliases)
    split, shown = with_periods_apart(spec, aliases)
    views = {source: name for name, source in shown.items() if name not in found}
    changed = False
    for target in [e.target for e in split.equations if e.target in {*rounded} & {*views}]:
        made = _InPlace.of(split, target, views[target], {*fixed})
        if made is not None:
            split, changed = made.spec(narrow), True
    if not changed:
        return spec, found
    there = {e.target for e in split.equations}
    return split, {name: source for name, source in shown.items() if name in there}


@dataclass(frozen=True, slots=True)
class _InPlace:
    """A convolution, and the reads that interleave its phases."""

    before: Spec
    known: Facts
    convolution: Equation
    x: Read
    w: Read
    channel: str  # the reduced index of the channels of `x`
    view: str  # of the convolution's result, with the phases apart
    reader: Equation
    read: Read  # of the view, by `reader`
    windows: tuple[tuple[int, Window], ...]  # by pixel dimension of `x`

    @staticmethod
    def of(spec: Spec, target: str, view: str, fixed: Collection[str]) -> _InPlace | None:
        """None unless all of the result is read by phases, at the indices of its readers."""
        e, known = spec.equation(target), facts(spec)
        parts = convolution_parts(e)
        readers = [f for f in spec.equations if view in f.sources()]
        kept = {t.name for t in spec.outputs}
        others = [f for f in spec.equations if target in f.sources() and f.target != view]
        if parts is None or others or kept & {target, view} or len(readers) != 1:
            return None
        x, w, taps = parts
        reads = {r for r in readers[0].reads() if r.tensor == view}
        channels = [i for i in e.reduced if i not in taps]
        if len(reads) != 1 or len(channels) != 1 or w.tensor not in fixed or w.pad is not None:
            return None
        (read,), (channel,) = reads, channels
        windows = _windows(e, x, taps, channel)
        made = _InPlace(spec, known, e, x, w, channel, view, readers[0], read, windows)
        return made if made._suits() else None

    def _suits(self) -> bool:
        """Whether all taps are summed, phases and channels fill tiles, and the reader has the
        indices of the results alone."""
        e, sizes = self.convolution, shape(self.known.tensors[self.view], {})
        outs = [i for i in e.indices if i in indices(self.w)]
        wide = all(self.known.tensors[r.tensor].dtype == "f32" for r in (self.x, self.w))
        plain = self.read.pad is None and set(indices(self.read)) == set(self.reader.indices)
        if len(outs) != 1 or not (wide and plain) or e.reduce.ranges and self._jagged():
            return False
        d = e.indices.index(outs[0])
        phases, own = sizes[d], sizes[d + 1]
        phase, *rest = self.read.at[d], *self.read.at[:d], *self.read.at[d + 1 :]
        if affine(phase) is None or not all(isinstance(p, Index) for p in rest):
            return False
        fills = not TILE % phases and not own % (TILE // phases)
        lines = not number(self.known.ranges[self.channel].high, {}) % LINE
        pixels = len(e.indices) - d - 1
        return fills and lines and phases <= MOST_PHASES and len(self.windows) == pixels

    def _jagged(self) -> bool:
        return any(r.jagged or r.partial for r in self.convolution.reduce.ranges)

    def spec(self, narrow: str) -> Spec:
        """The spec in which `reader` reads the phases where they are."""
        taken = {*self.known.tensors}
        image, filtered = fresh("operand", taken), fresh("operand", taken)
        name = fresh(f"{self.convolution.target}_in_place", taken)
        whole = Read(name, self.reader.at)
        made: list[Equation] = []
        for e in self.before.equations:
            if e is self.convolution:
                made += [
                    self._image(image, narrow),
                    self._filter(filtered, narrow),
                    self._stored(name, image, filtered),
                ]
            elif e is self.reader:
                made.append(replace(e, value=_replaced(e.value, self.read, whole)))
            elif e.target != self.view:
                made.append(e)
        return pruned(replace(self.before, equations=tuple(made)))

    def _image(self, name: str, narrow: str) -> Equation:
        """The copy of the image with channels last; of an input, with the zeros around it.

        A kernel that computes the image can store the copy as well, but no zeros around it.
        """
        order = [d for d, p in enumerate(self.x.at) if p != Index(self.channel)]
        order.append(self.x.at.index(Index(self.channel)))
        own = tuple(Index(f"{name}_d{d}") for d in range(len(order)))
        sizes = list(shape(self.known.tensors[self.x.tensor], {}))
        at: list[Expr] = list(own)
        if self._padded():
            for d, one in self.windows:
                taps = number(self.known.ranges[one.tap].high, {}) if one.tap else 1
                pixels = number(self.known.ranges[one.out].high, {})
                sizes[d] = pixels + one.step * (taps - 1)
                at[d] = _moved(own[d], one.offset)
        pad = self.x.pad if self._padded() else None
        value = Cast(narrow, replace(self.x, at=tuple(at), pad=pad))
        there = tuple(own[d] for d in order)
        return Equation(name, there, value, sizes=tuple(Number(sizes[d]) for d in order))

    def _padded(self) -> bool:
        """Whether the copy has the zeros around the image."""
        given = {t.name for t in self.before.inputs}
        return self.x.pad is not None and self.x.tensor in given

    def _filter(self, name: str, narrow: str) -> Equation:
        """The filter with channels before phases, in the order in which results are stored."""
        order = self._order
        names = {i: Index(f"{name}_d{n}") for n, i in enumerate(order)}
        read = replace(self.w, at=tuple(renamed(self._placed(p), names) for p in self.w.at))
        sizes = tuple(self.known.ranges[i].high for i in order)
        return Equation(name, tuple(names[i] for i in order), Cast(narrow, read), sizes=sizes)

    def _stored(self, name: str, image: str, filtered: str) -> Equation:
        """The convolution at the indices of its reader."""
        e = self.convolution
        w = Read(filtered, tuple(map(Index, self._order)))
        last = Index(self.channel)
        moved = dict(self.windows)
        at: list[Expr] = []
        for d, p in enumerate(self.x.at):
            if p == last:
                continue
            if self._padded() and d in moved:
                one = moved[d]
                p = Index(one.out)
                if one.tap:
                    p = p + (Index(one.tap) * one.step if one.step > 1 else Index(one.tap))
            at.append(self._placed(p))
        x = Read(image, (*at, last), pad=None if self._padded() else self.x.pad)
        value = replace(e.reduce, body=product((x, w)))
        sizes = tuple(self.known.ranges[i].high for i in self.reader.indices)
        return Equation(name, self.reader.at, value, sizes=sizes)

    @property
    def _out(self) -> str:
        """The index of the convolution's channels, which contain the phases."""
        return next(i for i in self.convolution.indices if i in indices(self.w))

    @property
    def _order(self) -> tuple[str, ...]:
        """The indices of the new filter: taps, channels and phases as the reader has them, and the
        channels of the image."""
        d = self.convolution.indices.index(self._out)
        stored = {i for p in self.read.at[d : d + 2] for i in indices(p)}
        taps = (i for i in indices(self.w) if i not in (self.channel, self._out))
        return (*taps, *(i for i in self.reader.indices if i in stored), self.channel)

    def _placed(self, position: Expr) -> Expr:
        """A position of the convolution's operands in terms of the reader's indices."""
        d = self.convolution.indices.index(self._out)
        each = shape(self.known.tensors[self.view], {})[d + 1]
        at = self.read.at
        channel = at[d] * each + at[d + 1]
        places = (*at[:d], channel, *at[d + 2 :])
        return renamed(position, dict(zip(self.convolution.indices, places, strict=True)))


def _windows(
    e: Equation, x: Read, taps: Collection[str], channel: str
) -> tuple[tuple[int, Window], ...]:
    """How the windows move along each dimension of the image; empty if one moves otherwise."""
    found: list[tuple[int, Window]] = []
    for d, position in enumerate(x.at):
        own = set(indices(position))
        if own <= {channel} or d == 0 and not own & {*taps}:
            continue
        one = window(position, taps)
        if one is None or one.out not in e.indices:
            return ()
        found.append((d, one))
    return tuple(found)


def _moved(index: Index, by: int) -> Expr:
    if not by:
        return index
    return index + by if by > 0 else index - -by


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    return new if expr == old else rebuilt(expr, lambda part: _replaced(part, old, new))
