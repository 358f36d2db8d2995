"""Filter taps: loads of one tensor at shifted positions, which share one window in shared memory
(`copy(x, by=window)`).

The taps of a filter read overlapping elements in the tensor's order, which is seldom the order that
matrix instructions read. Threads load the window of all taps of a tile once, in runs that are
contiguous in memory, and store it with K contiguous, 16 bytes per thread. A tap's tile begins some
rows later in the window, whose row strides are those of the tile plus all shifts:

    window[p, q, c] = x[c, p - 1, q - 1]      p < 8 + 2, q < 32 + 2
    tap (i, j)                                begins at row i * 34 + j; row (p, q) of it is p * 34 + q

So every shift is a number of whole rows of K. Warps load operands from the window with an address
per thread; instructions with shared memory descriptors could not read rows with gaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.layout.layout import Layout
from backends.gpu.threads import thread as to
from backends.gpu.threads.constants import constant
from backends.gpu.threads.distribution import bits_of, spread
from backends.gpu.threads.facts import Operand
from backends.gpu.threads.plans import Plan
from backends.gpu.threads.staging import COPY_BYTES, NO_PARTS, Staging
from backends.gpu.threads.vectors import coefficient, contiguous, positions
from backends.gpu.tile import Name
from ir.spec import DTYPES, Apply, Expr, Number

LEAST = 32  # elements that a repetition of an axis covers
SUMMED_BYTES = 64  # multiple of bytes of K that neighbouring threads store


@dataclass(frozen=True, slots=True)
class Taps:
    """Loads of one tensor in one block, at positions that differ by constants."""

    loads: dict[Name, of.Load]
    # For each load, the shift along the indices of its positions; the least is 0
    shifts: dict[Name, dict[str, int]]
    place: of.Place  # of the window, at the least shifts, masked by everything that any load checks

    def more(self, index: str) -> int:
        """Additional positions of the window along an index, beyond those of a tile."""
        return max(shift[index] for shift in self.shifts.values())


def taps(block: Iterable[of.Statement], names: Iterable[Name]) -> list[Taps]:
    """The loads of these variables, grouped by block and tensor. Raises BackendError where loads of
    a group differ by more than constants."""
    wanted, found = set(names), []
    groups: dict[str, list[of.Load]] = {}
    for s in block:
        match s:
            case of.Load(name, place) if name in wanted:
                groups.setdefault(place.tensor.stem, []).append(s)  # type: ignore[attr-defined]
            case of.Loop(body=body):
                found += taps(body, wanted)
            case of.Guard(body=body, others=others):
                found += [*taps(body, wanted), *taps(others, wanted)]
    return [*found, *(_taps(tensor, loads) for tensor, loads in groups.items())]


def _taps(tensor: str, loads: Sequence[of.Load]) -> Taps:
    apart = {s.name: _parts(s.place) for s in loads}
    first = loads[0]
    bases = {frozenset(term for term, _ in parts) for parts in apart.values()}
    others = {s.other for s in loads}
    if len(bases) > 1 or len(others) > 1:
        raise _refused(tensor, "its loads differ by more than numbers")
    added = {name: dict(parts) for name, parts in apart.items()}
    least = {term: min(of_one[term] for of_one in added.values()) for term, _ in apart[first.name]}
    at: dict[str, of.Term] = {}
    for term, by in least.items():
        index = _index(term.value)
        if any(of_one[term] != by for of_one in added.values()):
            if not index or coefficient(term.value, index) != 1:
                raise _refused(tensor, "its positions are steps apart, or a shift is along no tile")
        if index in at:
            raise _refused(tensor, f"`{index}` is in several of its dimensions")
        at |= {index: term} if index else {}
    shifts = {
        name: {i: of_one[term] - least[term] for i, term in at.items()}
        for name, of_one in added.items()
    }
    terms = tuple(replace(term, value=_plus(term.value, by)) for term, by in least.items())
    begins = {i: _plus(term.value, least[term]) for i, term in at.items()}
    checks = [_moved(c, begins) for s in loads for c in s.place.mask if isinstance(c, of.Check)]
    masks = [c for c in first.place.mask if not isinstance(c, of.Check)]
    place = of.Place(first.place.tensor, terms, tuple(dict.fromkeys((*masks, *checks))))
    return Taps({s.name: s for s in loads}, shifts, place)


def _parts(place: of.Place) -> list[tuple[of.Term, int]]:
    """The terms of a place without constants, one for each stride, and the constant that is added to each."""
    numbers: Counter[tuple[Expr, ...]] = Counter()
    found: dict[tuple[Expr, ...], of.Term] = {}
    for term in place.terms:
        assert isinstance(term, of.Term), "an affine sum"
        base, by = term.value, 0
        match base:
            case Number(value):
                base, by = Number(0), int(value)
            case Apply("add", (inner, Number(value))):
                base, by = inner, int(value)
        numbers[term.stride] += by
        if base != Number(0) and found.get(term.stride, term).value not in (term.value, Number(0)):
            raise _refused(place.tensor.stem, "it has several positions along a dimension")  # type: ignore[attr-defined]
        if base != Number(0) or term.stride not in found:
            found[term.stride] = replace(term, value=base)
    return [(term, numbers[stride]) for stride, term in found.items()]


def _plus(expr: Expr, by: int) -> Expr:
    return Apply("add", (expr, Number(by))) if by else expr


def _index(expr: Expr) -> str:
    """The index of the only positions in an expression; empty: there are several, or none."""
    names = {n.stem for n in positions(expr)}
    return names.pop() if len(names) == 1 else ""


def _moved(check: of.Check, at: dict[str, Expr]) -> of.Check:
    """A check on one tap's positions as a check on the window's, which are the same positions of the tensor."""
    index = _index(check.at)
    return replace(check, at=at[index]) if index in at else check


def _refused(tensor: str, why: str) -> BackendError:
    return BackendError("emit", f"`{tensor}` is not copied by window: {why}")


class Tapped(Staging):
    """Lowering with windows that threads copy."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        wanted = [n for n in self.facts.loads if (rows := self.rows_of(n)) and rows.window]
        groups = taps((*self.launch.once, *self.launch.body), wanted)
        self.taps = {name: group for group in groups for name in group.loads}

    def statement(self, s: of.Statement) -> None:
        """Appends the statements for one statement of the tile program."""
        kept = self.waiting and self._waits_later(s)
        self.waiting = self.waiting and not kept
        if isinstance(s, of.Load) and s.name in self.taps:
            self._tap(s, self.taps[s.name])
        else:
            super().statement(s)
        self.waiting = self.waiting or kept

    def _waits_later(self, s: of.Statement) -> bool:
        """Whether a statement need not wait for pending copies: with a window only the matmuls
        wait, after its loads have been issued. Persistent blocks wait once for what they copy for
        several tiles."""
        if not self.taps or self.launch.resident:
            return False
        plain = isinstance(s, of.Load | of.Positions | of.Bounds | of.StepOrigin)
        return plain or isinstance(s, of.Assign) and id(s) not in self.facts.matmuls

    def free_region(self) -> str:
        """The shared memory region for a tile that is stored: that of a window, which all taps have read."""
        windows = [self.shared[_tile_of(n)].region for n in self.taps if _tile_of(n) in self.shared]
        return windows[0] if windows and not self.nesting else super().free_region()

    def distributed(
        self,
        order: tuple[str, ...],
        along: str,
        element_bytes: int,
        parts: Mapping[str, Expr] = NO_PARTS,
        most: int = 0,
    ) -> tuple[to.Axis, ...]:
        """The distribution of a copy between memories. With a window, the repetitions of an axis
        are not longer than a divisor of its size: the window and the filter are large, and each
        axis is rounded up to whole repetitions."""
        known = {n.stem: e.size for n, e in self.launch.constants if isinstance(e, of.BlockWidth)}
        short = {}
        for i in (i for i in order if self.taps and i in known):
            if isinstance(parts.get(i), Number):
                continue
            size = constant(known[i], self.sizes)
            short[i] = Number(min(self.owners.widths[i], max(LEAST, size & -size)))
        axes = super().distributed(order, along, element_bytes, {**parts, **short}, most)
        return tuple(replace(a, width=self.width(a.index)) if a.index in short else a for a in axes)

    def _through_shared(self, s: of.Store) -> tuple[to.Axis, ...]:
        """The distribution of a tile that is stored through shared memory. With a window, the outer
        axes that distinguish threads of a warp are next to its rows, which are padded, so that rows
        start in different banks."""
        axes = super()._through_shared(s)
        if not self.taps or not axes:
            return axes
        held = {a.index: a for a in self.fragments[self.variable(s.value)].axes}  # type: ignore[arg-type]
        warp = set(range(self.owners.warp_bits))
        outer = sorted(axes[:-1], key=lambda a: bool(bits_of(held[a.index]) & warp))
        return (*outer, axes[-1])

    def copy(self, s: of.Load, stage: Expr | None, stages: int = 1) -> None:
        """A prefetched copy; a window is loaded at its first tap instead."""
        if s.name in self.taps:
            tensor = s.place.tensor.stem  # type: ignore[attr-defined]
            raise _refused(tensor, "its loop copies ahead: drop `pipeline` of what that loads")
        super().copy(s, stage, stages)

    def _tap(self, s: of.Load, group: Taps) -> None:
        """A tap's tile, and at the first tap the window."""
        tensor = s.place.tensor.stem  # type: ignore[attr-defined]
        if s.name not in self.facts.staged:
            raise _refused(tensor, "something else than a matmul reads it")
        operand, plan = self.operands[s.name]
        dtype = self.typing.known[s.name][0]
        if plan.instruction is None or dtype != self.dtype_of(s.place) or DTYPES[dtype] != 2:
            raise _refused(tensor, "matrix instructions of 16 bits read it, as it is")
        if len(operand.k) != 1 or contiguous(group.place) in operand.k:
            raise _refused(tensor, "it is summed over its contiguous axis, or over several")
        if plan.warpgroup and self._side(operand):
            raise _refused(tensor, f"{plan.instruction.name} reads a second operand where it lies")
        first = next(iter(group.loads))
        home = _tile_of(first)
        if s.name == first:
            self._window(home, group, operand, plan)
        tile = self.shared[home]
        rows, shift = 1, 0
        for index, extent in reversed(list(zip(tile.axes[:-1], tile.extents[:-1], strict=True))):
            shift += group.shifts[s.name].get(index, 0) * rows
            rows *= int(extent.value)  # type: ignore[attr-defined]
        own = _tile_of(s.name)
        self.shared[own] = replace(tile, name=own, begin=shift * _row(tile))

    def _side(self, operand: Operand) -> int:
        """0 for the first operand of a matmul, 1 for the second."""
        return int(any(m.b is operand for m in self.facts.matmuls.values()))

    def _window(self, home: Name, group: Taps, operand: Operand, plan: Plan) -> None:
        """The window's tile, and its loads: as wide as a tile along the contiguous axis, then the rest."""
        tensor = group.place.tensor.stem  # type: ignore[attr-defined]
        first = next(iter(group.loads))
        self.tile(home, first, operand, plan, operand.k[0])
        tile = self.shared[home]
        if not all(isinstance(e, Number) for e in tile.extents[:-1]):
            raise _refused(
                tensor, "a tile has as many elements as only a launch knows: `tile` its indices"
            )
        if not tile.panel and not isinstance(tile.extents[-1], Number):
            raise _refused(
                tensor,
                "its rows are padded, and only a launch knows them: `tile` what it is summed over",
            )
        wide = tuple(
            Number(int(e.value) + group.more(i))  # type: ignore[attr-defined]
            for i, e in zip(tile.axes[:-1], tile.extents[:-1], strict=True)
        )
        self.shared[home] = tile = replace(tile, extents=(*wide, tile.extents[-1]))
        along = contiguous(group.place)
        body = int(self.width(along).value)  # type: ignore[attr-defined]
        parts = [(tile, Number(body), 0)]
        if rest := group.more(along):
            edge = replace(home, dim=1)
            self.shared[edge] = replace(tile, name=edge, begin=body * _row(tile))
            parts.insert(0, (self.shared[edge], Number(rest), body))
        stores = [self._part_of(group, along, *part) for part in parts]  # after all loads
        self.found += stores

    def _part_of(
        self, group: Taps, along: str, tile: to.Shared, width: Number, start: int
    ) -> to.Statement:
        """Loads a part of the window along the contiguous axis, of this width from `start` on;
        returns the statement that stores it."""
        first = next(iter(group.loads))
        axes = self._covered(tile, along, width)
        with self.apart() as found:
            for axis in axes:
                self.place_copy(axis, Number(start) if start and axis.index == along else None)
        place = self.place(self._masked(group), {a.index: a for a in axes})
        held = self.temporary(tile.dtype, axes)
        load = group.loads[first]
        self.found += found
        busy = 1 << sum(len(bits_of(a)) for a in axes)

        def by_some(s: to.Statement) -> to.Statement:
            few = of.Check(to.Thread(), below=Number(busy))
            return to.Guard(few, (s,)) if busy < self.threads else s

        self.put(by_some(to.Load(held, place, load.other, None, load.cache)))
        return by_some(to.SharedStore(tile.name, held))

    def _masked(self, group: Taps) -> of.Place:
        """The place of a window with masks for its positions. A position that no tap checks is
        masked by the end of the tap with the largest shift."""
        mask: list[Expr] = []
        for c in group.place.mask:
            index = _tested(c)
            more = group.more(index) if index in next(iter(group.shifts.values())) else 0
            if not more or isinstance(c, of.Check):
                mask.append(c)
                continue
            ends = [o for o in group.place.mask if isinstance(o, of.Check) and o.below is not None]
            if any(_tested(o) == index for o in ends):
                continue
            bounds = next(h for h in self.headers[index] if isinstance(h, of.Bounds))
            at = of.Spread(bounds.positions, c.axes)  # type: ignore[attr-defined]
            mask.append(of.Check(at, below=Apply("add", (bounds.end, Number(more)))))
        return replace(group.place, mask=tuple(mask))

    def _covered(self, tile: to.Shared, along: str, width: Number) -> tuple[to.Axis, ...]:
        """The distribution of the window's loads: neighbouring threads take consecutive elements of
        memory, then 16 bytes along K, which they store, then rows."""
        inner, size = tile.axes[-1], DTYPES[tile.dtype]
        widths = {i: int(e.value) for i, e in zip(tile.axes[:-1], tile.extents[:-1])}  # type: ignore[attr-defined]
        widths |= {along: int(width.value), inner: self.owners.widths[inner]}
        run = min(COPY_BYTES // size, widths[inner] & -widths[inner])
        left, own = list(range(self.owners.bits)), {i: list[int]() for i in tile.axes}

        def take(index: str, count: int) -> None:
            own[index] += left[: max(0, count)]
            del left[: max(0, count)]

        take(along, min(self.owners.warp_bits, widths[along].bit_length() - 1))
        take(inner, (min(SUMMED_BYTES // size, widths[inner]) // run).bit_length() - 1)
        for index in (i for i in reversed(tile.axes[:-1]) if i != along):
            take(index, (widths[index] & -widths[index]).bit_length() - 1)
        take(along, (widths[along] & -widths[along]).bit_length() - 1 - len(own[along]))
        return tuple(
            spread(own[i], run if i == inner else 1).axis(
                i, self.width(i) if i == inner else Number(widths[i]), self.threads
            )
            for i in tile.axes
        )

    # -- operands -----------------------------------------------------------------------------

    def in_registers(self, operand: Operand, plan: Plan) -> Name | None:
        """A tap that warpgroups multiply is loaded to registers, as its rows have gaps."""
        name = self.source(operand)
        if name not in self.taps or not plan.warpgroup or plan.instruction is None:
            return super().in_registers(operand, plan)
        if not plan.instruction.a:
            tensor = self.facts.loads[name].place.tensor.stem  # type: ignore[attr-defined]
            raise _refused(tensor, f"{plan.instruction.name} reads no operand in registers")
        tile, inner = self.operand(operand, plan, ""), operand.k[0]
        axes = (self.joined(operand.groups[-2], plan.a[0]), self.axis(inner, plan.a[1]))
        held = self.temporary(self.shared[tile].dtype, axes)
        self.fetch(to.SharedLoad(held, tile, None, (), self.by(tile, operand, inner, plan)))
        return held

    def view(self, tile: Name, operand: Operand) -> Name:
        """A view of the same memory with the axes of each group as one, with the row strides of the window."""
        if replace(tile, sort="value") not in self.taps or all(len(g) == 1 for g in operand.groups):
            return super().view(tile, operand)
        held = self.shared[tile]
        groups = sorted((g for g in operand.groups if g), key=lambda g: held.axes.index(g[0]))
        widths = [int(self.width(i).value) for i in held.axes[:-1]]  # type: ignore[attr-defined]
        wide = [int(e.value) for e in held.extents[:-1]]  # type: ignore[attr-defined]
        apart = [prod(wide[n + 1 :]) for n in range(len(wide))]
        name = replace(tile, dim=0)
        self.shared[name] = replace(
            held,
            name=name,
            axes=tuple("_".join(g) for g in groups),
            extents=(Number(prod(wide)), held.extents[-1]),
            lines=Layout(tuple(widths[::-1]), tuple(apart[::-1])),
        )
        return name


def _tile_of(name: Name) -> Name:
    return Name("shared", name.stem, copy=name.copy)


def _row(tile: to.Shared) -> int:
    """The row stride of a tile in elements."""
    return tile.panel or tile.padding + int(tile.extents[-1].value)  # type: ignore[attr-defined]


def _tested(condition: Expr) -> str:
    """The index whose positions a condition tests; empty: it tests several, or none."""
    names = {
        n.stem for n in condition.walk() if isinstance(n, Name) and n.sort in ("mask", "positions")
    }
    return names.pop() if len(names) == 1 else ""
