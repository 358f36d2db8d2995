"""Windowed: other equations worth trying for a convolution where programs have threads.

A weight lies with its taps last, so that what one tap takes of it is scattered: a copy of it lies
with them first. Positions of the result become one index, so that tiles of it are full; channels
go last in a copy of what the windows slide over, so that sums run along memory; and few channels
become one sum with the taps, as a matrix unit sums many at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from ir.affine import affine
from ir.autoschedule.seeds import tiled
from ir.contraction import Contraction, contraction, fills, indices
from ir.errors import KernelError
from ir.schedule import Decision
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import Cast, Equation, Expr, Index, Read, Spec
from ir.variant.derived import copy_of, flattened
from ir.variant.flatten import flatten
from ir.variant.pack import dimensions
from ir.variant.precision import NARROW
from ir.verify import facts

READ, WRITTEN = 32, 64  # contiguous elements that a copy reads, and writes
FEW = 16  # channels below which a matrix unit sums taps along with them

Decisions = tuple[Decision, ...]


def windowed(spec: Spec, sizes: Mapping[str, int]) -> tuple[Decisions, ...]:
    """Decisions to start from, each a set of its own; none where a spec is no single convolution.

    sizes: the free and the derived ones.
    """
    one = single_convolution(spec, sizes)
    if one is None or not one.taps:
        return ()
    return tuple(dict.fromkeys(made for made in one.choices() if made))


def depthwise(spec: Spec, sizes: Mapping[str, int]) -> tuple[Decisions, ...]:
    """The same for a depthwise convolution whose result has its channels last: what windows slide over with
    channels last. Otherwise neighbouring threads read scattered elements, once for each tap."""
    found = [(e, product) for e in spec.equations if (product := contraction(e))]
    if len(found) != 1 or fills(found[0][1], facts(spec).ranges):
        return ()
    one = Convolution.of(spec, sizes, *found[0])
    if one is None or len(one.taps) < 2 or one.channels:
        return ()
    names, last = dimensions(spec, one.x.tensor), one.e.indices[-1]
    if last not in names[:-1] or Index(last) not in one.x.at:
        return ()
    order = sorted(names, key=lambda i: i == last)
    return (one.copied(one.x.tensor, names, order, "", every=True),)


def rounded(spec: Spec, sizes: Mapping[str, int], sums: Collection[str]) -> tuple[Decisions, ...]:
    """The same for one of `sums`, whose operands may be rounded: channels last in copies that are
    rounded as they are made, so that nothing is left to do to what a product loads. Also for a
    convolution without taps, whose channels do not lie last."""
    one = single_convolution(spec, sizes)
    if one is None or one.e.target not in sums or one.few() or not one.last():
        return ()
    if any(facts(spec).tensors[r.tensor].dtype == NARROW for r in (one.x, one.w)):
        return ()
    copies = (*one.packed(NARROW), *one.last(NARROW))
    return tuple((*copies, *merged) for merged in one.merged())


def of_rounded(spec: Spec, sizes: Mapping[str, int]) -> tuple[Decisions, ...]:
    """The same for a convolution that reads operands which are rounded already."""
    one = single_convolution(spec, sizes)
    return one.merged() if one and one.reads_rounded() else ()


@dataclass(frozen=True, slots=True)
class Apart:
    """A convolution in three products of a narrower dtype, the parts of whose filter are made once, by a launch of their
    own. made: decisions to start from.  parts: those on the parts of both operands, which the products bring."""

    made: Decisions
    parts: Decisions


def filters_apart(spec: Spec, sizes: Mapping[str, int]) -> tuple[Apart, ...]:
    """Ways to have the parts of a filter made once; none where a spec is no single convolution."""
    one = single_convolution(spec, sizes)
    return () if one is None else tuple(dict.fromkeys(one.apart()))


def single_convolution(spec: Spec, sizes: Mapping[str, int]) -> Convolution | None:
    """The one product of a spec as a convolution; None where it has none, or several. sizes: the free and the derived ones."""
    found = [(e, product) for e in spec.equations if (product := contraction(e))]
    ranges = facts(spec).ranges
    if len(found) != 1 or not fills(found[0][1], ranges):
        return None
    return Convolution.of(spec, sizes, *found[0])


class Convolution:
    """One convolution. x: what windows slide over, or the larger, w: what weighs them.  taps: the
    reduced indices that move a window, may be none; channels: the others."""

    def __init__(
        self,
        spec: Spec,
        sizes: Mapping[str, int],
        e: Equation,
        x: Read,
        w: Read,
        taps: tuple[str, ...],
    ):
        self.spec, self.sizes, self.e, self.x, self.w, self.taps = spec, sizes, e, x, w, taps
        self.channels = tuple(i for i in e.reduced if i not in taps)

    @staticmethod
    def of(
        spec: Spec, sizes: Mapping[str, int], e: Equation, product: Contraction
    ) -> Convolution | None:
        sides = [r for side in (product.a, product.b) if (r := _read(side))]
        given = {t.name for t in spec.inputs}
        if len(sides) < 2 or any(r.tensor not in given for r in sides):
            return None
        slid = [_slid(r, e.reduced, product.batch) for r in sides]
        order = [(bool(s), _size(spec, r.tensor, sizes)) for s, r in zip(slid, sides, strict=True)]
        first, second = sorted(range(2), key=order.__getitem__)
        w, x, found = sides[first], sides[second], slid[second]
        taps = tuple(i for i in e.reduced if i in found)
        return Convolution(spec, sizes, e, x, w, taps)

    def choices(self) -> Iterator[Decisions]:
        weight, windows = self.packed(), self.last()
        flat = self.flat(self.positions())
        summed = self.summed()
        yield weight
        yield (*weight, *flat)
        yield (*weight, *windows)
        yield (*weight, *windows, *flat)
        yield summed

    def apart(self) -> Iterator[Apart]:
        """With and without channels last, and positions or, of few channels, channels and taps as one index."""
        found = contraction(self.e)
        if found is None:
            return
        w, x = ("a", "b") if self.w in (_read(found.a), found.a) else ("b", "a")
        own = {"a": found.rows, "b": found.columns}
        if len(own[w]) >= len(own[x]):
            return  # then its parts do not come first
        names = {side: (*found.batch, *own[side], *found.over) for side in own}
        end = Decision("kernel", f"{self.e.target}_{w}l")

        def ordered(side: str, last: tuple[str, ...]) -> Decisions:
            """The parts of an operand with these indices last."""
            order = sorted(names[side], key=lambda i: last.index(i) if i in last else -1)
            if tuple(order) == names[side]:
                return ()
            option = (("order", "_".join(order)),)
            parts = (f"{self.e.target}_{side}{part}" for part in "hl")
            return tuple(Decision("pack", part, option) for part in parts)

        flat, windows = self.flat(self.positions()), self.last()
        taps_first = ordered(w, (*own[w], *self.channels))
        for made in ((), flat, windows, (*windows, *flat)):
            yield Apart(made, (end, *taps_first))
        if self.few() and len(self.e.reduced) > 1:
            yield Apart(self.summed(), (end,))
            order = (*self.taps, *self.channels)
            if windows and (merged := self.flat(order)):
                yield Apart((*windows, *merged), (end, *ordered(w, order), *ordered(x, order)))

    def reads_rounded(self) -> bool:
        """Whether both operands were rounded before."""
        tensors = facts(self.spec).tensors
        return all(tensors[r.tensor].dtype == NARROW for r in (self.x, self.w))

    def merged(self) -> tuple[Decisions, ...]:
        """Positions as one index, with the images of a batch and without, and apart. Tiles of a side are full so: of 784 pixels
        of ten images each they fill 61, and 7 for each image alone, whose last is nearly empty."""
        positions = self.positions()
        moved = {*indices(self.x)} - {*indices(self.w)}
        every = tuple(i for i in self.e.indices if i in moved)
        return tuple(dict.fromkeys((self.flat(positions), self.flat(every), ())))

    def positions(self) -> tuple[str, ...]:
        """The positions of a result that windows are at; without taps, those beside channels."""
        at = [set(indices(p)) for p in self.x.at]
        after = next((n for n, p in enumerate(at) if p & set(self.channels)), len(at))
        moved = [p for p in at if len(p) > 1] if self.taps else at[after + 1 :]
        return tuple(i for i in self.e.indices if any(i in p for p in moved))

    def packed(self, dtype: str = "") -> Decisions:
        """The weight with taps first and channels last. dtype: what its copy is rounded to."""
        names = dimensions(self.spec, self.w.tensor)
        order = sorted(names, key=lambda i: (i not in self.taps, i in self.channels))
        fine = names[-1] in self.channels and not dtype
        return () if fine else self.copied(self.w.tensor, names, order, dtype)

    def last(self, dtype: str = "") -> Decisions:
        """What windows slide over with channels last."""
        at = {i for p in self.x.at if isinstance(p, Index) for i in indices(p)}
        names = dimensions(self.spec, self.x.tensor)
        order = sorted(names, key=lambda i: i in self.channels and i in at)
        return self.copied(self.x.tensor, names, order, dtype)

    def copied(
        self, tensor: str, names: tuple[str, ...], order: list[str], dtype: str, every: bool = False
    ) -> Decisions:
        """A copy in another order, and tiles for it that run along memory in both. every: of dimensions that
        are whole too, which else are cut as the result's."""
        if list(names) == order and not dtype:
            return ()
        rounding = (("dtype", dtype),) if dtype else ()
        made = Decision("pack", tensor, (("order", "_".join(order)), *rounding))
        shape = facts(self.spec).tensors[tensor].shape
        extents = dict(zip(names, (number(s, self.sizes) for s in shape), strict=True))
        tiles = dict.fromkeys(names, 1) | {order[-1]: WRITTEN}
        room = READ
        for i in reversed(names):
            tiles[i] = max(tiles[i], min(room, extents[i]))
            room //= extents[i]
            if not room:
                break
        cuts = (
            tiled(f"{copy_of(made)}_{i}", power_of_two(n), "grid")
            for i, n in tiles.items()
            if every or n < extents[i]
        )
        return (made, *(d for cut in cuts for d in cut))

    def flat(self, positions: tuple[str, ...]) -> Decisions:
        """Indices that are adjacent as one, the last ones first."""
        spec, made = self.spec, []
        inner = positions[-1] if positions else ""
        for outer, _ in list(pairwise(positions))[::-1]:
            decision = Decision("flatten", outer, (("inner", inner),))
            try:
                spec = flatten(spec, decision)
                facts(spec)
            except KernelError:
                return ()
            made.append(decision)
            inner = flattened(decision)
        return tuple(made)

    def few(self) -> bool:
        """Whether the channels alone do not fill a product."""
        ranges = facts(self.spec).ranges
        return prod(number(ranges[i].high, self.sizes) for i in self.channels) < FEW

    def summed(self) -> Decisions:
        """Channels and taps as one index, where the channels are few."""
        return self.flat(self.e.reduced) if self.few() and len(self.e.reduced) > 1 else ()


def _read(side: Expr) -> Read | None:
    inner = side.value if isinstance(side, Cast) else side
    return inner if isinstance(inner, Read) else None


def _slid(read: Read, reduced: Collection[str], batch: Collection[str]) -> set[str]:
    """The reduced indices that move a window over what is read: forwards, beside another index.
    What is added to a batch, of which a program has one, are the channels of a group."""
    forms = (affine(p) for p in read.at)
    terms = ({i: by for i, by in f.terms if i not in batch} for f in forms if f)
    return {i for one in terms if len(one) > 1 for i, by in one.items() if i in reduced and by > 0}


def _size(spec: Spec, tensor: str, sizes: Mapping[str, int]) -> int:
    return prod(number(s, sizes) for s in facts(spec).tensors[tensor].shape)
