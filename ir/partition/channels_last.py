"""Chooses a channels-last layout (NHWC) for the tensors between convolutions.

before: a[b, o, i, j] = sum(pad(x[b, c, i + r - 1, j + s - 1], 0.0) * w[o, c, r, s], c, r, s)
        y[b, o, i, j] = maximum(a[b, o, i, j], 0.0)
after:  w_last[o, r, s, c] = w[o, c, r, s]
        a[b, i, j, o] = sum(pad(x[b, i + r - 1, j + s - 1, c], 0.0) * w_last[o, r, s, c], c, r, s)
        y[b, i, j, o] = maximum(a[b, i, j, o], 0.0)

Sums over channels then read contiguous memory, and no kernel makes a permuted copy. Inputs and
outputs of the network keep their layouts, and so do tensors with views; the kernels that read or
write them convert. Filters are fixed inputs, so their permuted copies are constants.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ir.affine import affine
from ir.contraction import contraction, indices
from ir.recurrence import recurrences
from ir.sizes import value as number
from ir.spec import DTYPES, Cast, Equation, Expr, Index, Number, Read, Spec
from ir.verify import facts
from ir.visit import rebuilt

Order = tuple[int, ...]


def with_channels_last(spec: Spec, aliases: Mapping[str, str], fixed: Collection[str]) -> Spec:
    """Permutes the tensors around the convolutions of a literal spec to channels last.

    Inputs, outputs, recurrent tensors and tensors with views keep their layouts.

    aliases: by view, the tensor whose memory it shows.
    fixed: inputs that do not change between calls.
    """
    layout = _Layout(spec, aliases, fixed)
    if not layout.convolutions:
        return spec
    orders = layout.orders()
    filters = layout.filters()
    made: list[Equation] = []
    for e in spec.equations:
        packed = filters.get(e.target, ())
        for read, order in packed:
            if all(x.target != _last(read.tensor) for x in made):
                made.append(layout.copied(read.tensor, order))
        dims = orders.get(e.target, tuple(range(len(e.at))))
        every = orders | {read.tensor: order for read, order in packed}
        value = _permuted(e.value, every, {read.tensor: _last(read.tensor) for read, _ in packed})
        sizes = tuple(e.sizes[d] for d in dims) if e.sizes else ()
        made.append(replace(e, at=tuple(e.at[d] for d in dims), sizes=sizes, value=value))
    return replace(spec, equations=tuple(made))


def wide_convolutions(spec: Spec) -> bool:
    """Whether a convolution of the spec reads elements of more than 16 bits."""
    layout = _Layout(spec, {}, ())
    reads = [read for x, w, _ in layout.convolutions.values() for read in (x, w)]
    return any(DTYPES[layout.tensors[read.tensor].dtype] > 2 for read in reads)


def convolution_parts(e: Equation) -> tuple[Read, Read, set[str]] | None:
    """The image, the filter and the filter taps of a convolution; None for other equations."""
    found = contraction(e)
    if found is None:
        return None
    reads = [_read(side) for side in (found.a, found.b)]
    for x, w in (reads, reads[::-1]):
        if x is None or w is None or len(x.at) + _merged(x, e) != len(e.at):
            continue
        taps = {i for p in x.at if len(indices(p)) > 1 for i in indices(p) if i in e.reduced}
        plain = all(isinstance(p, Index | Number) for p in w.at)
        if taps and plain and taps <= set(indices(w)):
            return x, w, taps
    return None


class Window(NamedTuple):
    """How a window moves along one dimension of an image, at stride 1."""

    out: str  # index of the output pixel
    tap: str  # index of the filter tap; empty if the window has a single tap
    step: int  # from one tap to the next (dilation)
    offset: int  # of the first tap of the first window


def window(position: Expr, taps: Collection[str]) -> Window | None:
    """The window that a position reads; None unless it moves with stride 1 and a constant
    offset."""
    form = affine(position)
    if form is None or not isinstance(form.offset, Number):
        return None
    own = [term for term in form.terms if term[0] not in taps]
    moved = [term for term in form.terms if term[0] in taps]
    if len(own) != 1 or own[0][1] != 1 or len(moved) > 1 or any(step < 1 for _, step in moved):
        return None
    tap, step = moved[0] if moved else ("", 0)
    return Window(own[0][0], tap, step, int(form.offset.value))


def _merged(x: Read, e: Equation) -> int:
    """How many dimensions of the image are merged into others, as `ir/partition/flat_pixels.py`
    does."""
    own = [[i for i in indices(p) if i in e.indices] for p in x.at]
    moved = [found for p, found in zip(x.at, own, strict=True) if len(indices(p)) >= 2 * len(found)]
    return sum(len(found) - 1 for found in moved if len(found) > 1)


def summed_channels(spec: Spec, target: str) -> int:
    """The number of terms that a literal spec's sum has per filter tap; all terms, without
    windows."""
    e = spec.equation(target)
    found = convolution_parts(e)
    taps = found[2] if found else set()
    ranges = facts(spec).ranges
    return prod(number(ranges[i].high, {}) for i in e.reduced if i not in taps)


class _Layout:
    """The convolutions of a spec, and the channel dimension of each tensor between them."""

    def __init__(self, spec: Spec, aliases: Mapping[str, str], fixed: Collection[str]):
        self.spec, self.fixed = spec, frozenset(fixed)
        self.tensors = facts(spec).tensors
        apart = {t.name for t in spec.outputs} | set(aliases) | set(aliases.values())
        apart |= {t for found in recurrences(spec) for t in found.targets}
        self.free = {
            e.target
            for e in spec.equations
            if e.target not in apart and not e.accumulate and len(set(e.indices)) == len(e.at) > 2
        }
        self.convolutions = {
            e.target: found for e in spec.equations if (found := convolution_parts(e))
        }
        self.channels: dict[str, int] = {}  # by tensor: its channel dimension
        self.unlike: set[str] = set()  # tensors whose channels are read in several dimensions

    def orders(self) -> dict[str, Order]:
        """The channels-last permutation of each tensor whose channels are not last yet."""
        for target, (x, w, taps) in self.convolutions.items():
            self._mark_read(x, set(indices(w)) - taps)
            e = self.spec.equation(target)
            self._mark(target, [d for d, i in enumerate(e.indices) if i in indices(w)])
        before = -1
        while before != (before := len(self.channels) + len(self.unlike)):
            for e in self.spec.equations:
                self._spread(e)
        found = {t: d for t, d in self.channels.items() if t not in self.unlike}
        return {
            t: _moved(d, len(self.tensors[t].shape)) for t, d in found.items() if _inner(self, t, d)
        }

    def filters(self) -> dict[str, list[tuple[Read, Order]]]:
        """By convolution: the read of its filter and the permutation that puts its channels last.

        Only fixed filters whose channels are not last are included.
        """
        found: dict[str, list[tuple[Read, Order]]] = {}
        for target, (x, w, taps) in self.convolutions.items():
            reduced = set(self.spec.equation(target).reduced) - taps
            places = [
                d for d, p in enumerate(w.at) if isinstance(p, Index) and p.name in indices(x)
            ]
            summed = [d for d in places if indices(w.at[d])[0] in reduced]
            at = summed or [d for d in places if indices(w.at[d])[0] not in taps]
            if len(at) == 1 and at[0] != len(w.at) - 1 and w.tensor in self.fixed:
                found[target] = [(w, _moved(at[0], len(w.at)))]
        return found

    def copied(self, tensor: str, order: Order) -> Equation:
        """The equation of the channels-last copy of a filter."""
        names = tuple(f"{_last(tensor)}_{d}" for d in range(len(order)))
        return Equation(
            _last(tensor),
            tuple(Index(names[d]) for d in order),
            Read(tensor, tuple(map(Index, names))),
            sizes=tuple(self.tensors[tensor].shape[d] for d in order),
        )

    def _spread(self, e: Equation) -> None:
        """Propagates channel dimensions through an equation, from its target to its reads and
        back."""
        if e.target in self.convolutions:
            return
        channel = self.channels.get(e.target)
        if channel is not None:
            for read in e.reads():
                self._mark_read(read, {e.indices[channel]})
        for read in e.reads():
            if (dim := self.channels.get(read.tensor)) is not None:
                names = indices(read.at[dim])
                self._mark(e.target, [d for d, i in enumerate(e.indices) if (i,) == names])
        self._spread_product(e)

    def _spread_product(self, e: Equation) -> None:
        """Propagates through a matmul with a fixed matrix, which is a convolution with a single
        tap."""
        found = contraction(e)
        if found is None:
            return
        reads = [_read(side) for side in (found.a, found.b)]
        for x, w in (reads, reads[::-1]):
            if x is None or w is None or w.tensor not in self.fixed or len(x.at) != len(e.at):
                continue
            summed = set(e.reduced) & set(indices(x)) & set(indices(w))
            left = [d for d, i in enumerate(e.indices) if i in indices(w) and i not in indices(x)]
            if e.target in self.channels and [self.channels[e.target]] == left:
                self._mark_read(x, summed)
            dim = self.channels.get(x.tensor)
            if dim is not None and set(indices(x.at[dim])) == summed:
                self._mark(e.target, left)

    def _mark_read(self, read: Read, names: set[str]) -> None:
        """Marks the dimension of a tensor that is read at one of the named indices, possibly
        shifted."""
        if len(read.at) > 2:
            found = [d for d, p in enumerate(read.at) if _only(p) in names]
            self._mark(read.tensor, found)

    def _mark(self, tensor: str, dims: list[int]) -> None:
        if tensor not in self.free or not dims:
            return
        if len(dims) > 1 or self.channels.setdefault(tensor, dims[0]) != dims[0]:
            self.unlike.add(tensor)


def _inner(layout: _Layout, tensor: str, dim: int) -> bool:
    """Whether a dimension is not the last one."""
    return dim != len(layout.tensors[tensor].shape) - 1


def _moved(dim: int, rank: int) -> Order:
    """The permutation that moves one dimension to the end."""
    return (*(d for d in range(rank) if d != dim), dim)


def _only(position: Expr) -> str:
    """The index of a position of the form `index` or `index + constant`; empty for other
    positions."""
    found = affine(position)
    return found.terms[0][0] if found and len(found.terms) == 1 and found.terms[0][1] == 1 else ""


def _read(side: Expr) -> Read | None:
    inner = side.value if isinstance(side, Cast) else side
    return inner if isinstance(inner, Read) else None


def _last(tensor: str) -> str:
    return f"{tensor}_last"


def _permuted(expr: Expr, orders: Mapping[str, Order], names: Mapping[str, str]) -> Expr:
    """Permutes the positions of reads, and redirects some reads to other tensors."""
    made = rebuilt(expr, lambda part: _permuted(part, orders, names))
    if not isinstance(made, Read) or made.tensor not in orders:
        return made
    at = tuple(made.at[d] for d in orders[made.tensor])
    return replace(made, tensor=names.get(made.tensor, made.tensor), at=at)
