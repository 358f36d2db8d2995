"""Algorithm variants of a convolution that are worth trying where blocks have threads.

- A copy of the filter has its taps first. In the filter itself the taps are last, so the elements
  of one tap are scattered.
- Output pixels are flattened into one index, so that their tiles are full.
- A copy of the input has its channels last, so that the reduction is contiguous.
- Few channels are flattened with the taps into one K, since a matrix unit reduces many at a time.
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

READ, WRITTEN = 32, 64  # contiguous elements that a packing copy reads, and writes
FEW = 16  # channels below which a matrix unit reduces taps along with them

Decisions = tuple[Decision, ...]


def windowed(spec: Spec, sizes: Mapping[str, int]) -> tuple[Decisions, ...]:
    """Alternative sets of decisions to start from; empty where the spec is no single convolution."""
    one = single_convolution(spec, sizes)
    if one is None or not one.taps:
        return ()
    return tuple(dict.fromkeys(made for made in one.choices() if made))


def depthwise(spec: Spec, sizes: Mapping[str, int]) -> tuple[Decisions, ...]:
    """A channels-last copy of the input, for a depthwise convolution with a channels-last result.
    Without it, neighbouring threads read scattered elements, once for each tap."""
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
    """Variants for a convolution in `sums`, whose operands may be rounded. Channels-last copies
    round the operands, so that the matmul loads them unchanged. Also for a convolution without taps
    whose channels are not last."""
    one = single_convolution(spec, sizes)
    if one is None or one.e.target not in sums or one.few() or not one.last():
        return ()
    if any(facts(spec).tensors[r.tensor].dtype == NARROW for r in (one.x, one.w)):
        return ()
    copies = (*one.packed(NARROW), *one.last(NARROW))
    return tuple((*copies, *merged) for merged in one.merged())


def of_rounded(spec: Spec, sizes: Mapping[str, int]) -> tuple[Decisions, ...]:
    """Variants for a convolution whose operands are already rounded."""
    one = single_convolution(spec, sizes)
    return one.merged() if one and one.reads_rounded() else ()


@dataclass(frozen=True, slots=True)
class Apart:
    """A convolution in split precision (three narrow matmuls), whose filter is split once, by a
    launch of its own.

    made: decisions to start from. parts: decisions on the split parts of both operands, which the
    rewrite of the matmul introduces.
    """

    made: Decisions
    parts: Decisions


def filters_apart(spec: Spec, sizes: Mapping[str, int]) -> tuple[Apart, ...]:
    """Variants that split the filter once; empty where the spec is no single convolution."""
    one = single_convolution(spec, sizes)
    return () if one is None else tuple(dict.fromkeys(one.apart()))


def single_convolution(spec: Spec, sizes: Mapping[str, int]) -> Convolution | None:
    """The one matmul of a spec as a convolution; None where it has none or several. sizes: the free
    and the derived ones."""
    found = [(e, product) for e in spec.equations if (product := contraction(e))]
    ranges = facts(spec).ranges
    if len(found) != 1 or not fills(found[0][1], ranges):
        return None
    return Convolution.of(spec, sizes, *found[0])


class Convolution:
    """One convolution. x: the input over which windows slide, or the larger operand. w: the filter.
    taps: the reduced indices that move a window, possibly none. channels: the other reduced
    indices."""

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
        """Yields variants with and without channels last, and with flattened pixels or, for few
        channels, with channels and taps as one index."""
        found = contraction(self.e)
        if found is None:
            return
        w, x = ("a", "b") if self.w in (_read(found.a), found.a) else ("b", "a")
        own = {"a": found.rows, "b": found.columns}
        if len(own[w]) >= len(own[x]):
            return  # then the parts of the filter are not operand A of the matmul
        names = {side: (*found.batch, *own[side], *found.over) for side in own}
        end = Decision("kernel", f"{self.e.target}_{w}l")

        def ordered(side: str, last: tuple[str, ...]) -> Decisions:
            """The packs of the parts of an operand with these indices last."""
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
        """Whether both operands are already rounded."""
        tensors = facts(self.spec).tensors
        return all(tensors[r.tensor].dtype == NARROW for r in (self.x, self.w))

    def merged(self) -> tuple[Decisions, ...]:
        """Pixels as one index with the images of a batch, without them, and unflattened. Flattening
        fills the tiles: 784 pixels of each of ten images fill 61 tiles, but 7 for each image alone,
        the last of which is nearly empty."""
        positions = self.positions()
        moved = {*indices(self.x)} - {*indices(self.w)}
        every = tuple(i for i in self.e.indices if i in moved)
        return tuple(dict.fromkeys((self.flat(positions), self.flat(every), ())))

    def positions(self) -> tuple[str, ...]:
        """The output pixels over which windows move; without taps, the pixel indices next to the channels."""
        at = [set(indices(p)) for p in self.x.at]
        after = next((n for n, p in enumerate(at) if p & set(self.channels)), len(at))
        moved = [p for p in at if len(p) > 1] if self.taps else at[after + 1 :]
        return tuple(i for i in self.e.indices if any(i in p for p in moved))

    def packed(self, dtype: str = "") -> Decisions:
        """A copy of the filter with taps first and channels last. dtype: the dtype to which the copy is rounded."""
        names = dimensions(self.spec, self.w.tensor)
        order = sorted(names, key=lambda i: (i not in self.taps, i in self.channels))
        fine = names[-1] in self.channels and not dtype
        return () if fine else self.copied(self.w.tensor, names, order, dtype)

    def last(self, dtype: str = "") -> Decisions:
        """A copy of the input with channels last."""
        at = {i for p in self.x.at if isinstance(p, Index) for i in indices(p)}
        names = dimensions(self.spec, self.x.tensor)
        order = sorted(names, key=lambda i: i in self.channels and i in at)
        return self.copied(self.x.tensor, names, order, dtype)

    def copied(
        self, tensor: str, names: tuple[str, ...], order: list[str], dtype: str, every: bool = False
    ) -> Decisions:
        """A packed copy in another order, with tiles that are contiguous in both orders. every:
        also tiles the dimensions that fit one tile, which otherwise get the result's tiles."""
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
        """Flattens adjacent indices into one, innermost first."""
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
        """Whether the channels alone are too few to fill K of a matrix instruction."""
        ranges = facts(self.spec).ranges
        return prod(number(ranges[i].high, self.sizes) for i in self.channels) < FEW

    def summed(self) -> Decisions:
        """Flattens channels and taps into one index, where the channels are few."""
        return self.flat(self.e.reduced) if self.few() and len(self.e.reduced) > 1 else ()


def _read(side: Expr) -> Read | None:
    inner = side.value if isinstance(side, Cast) else side
    return inner if isinstance(inner, Read) else None


def _slid(read: Read, reduced: Collection[str], batch: Collection[str]) -> set[str]:
    """The reduced indices that move a window over what is read: with a positive stride, added to
    another index. An index that is added to a batch index is a channel of a group, since a block
    has one batch."""
    forms = (affine(p) for p in read.at)
    terms = ({i: by for i, by in f.terms if i not in batch} for f in forms if f)
    return {i for one in terms if len(one) > 1 for i, by in one.items() if i in reduced and by > 0}


def _size(spec: Spec, tensor: str, sizes: Mapping[str, int]) -> int:
    return prod(number(s, sizes) for s in facts(spec).tensors[tensor].shape)
