"""Staging for machines whose copies go through registers: loads are issued ahead of the stores to
shared memory.

A loop with S stages has S - 1 buffers in shared memory, and one tile in flight in registers. Each
iteration stores the tile that the iteration before loaded, issues the loads of the next one, and
multiplies while these are in flight.

A schedule may copy all loads of a loop directly to shared memory (`copy(x, by=lds)`). The loop then
has S buffers and waits for its copies as on other machines. A wavefront fills memory contiguously
in the order of its threads, so tiles are in panels of 16 bytes: the same part of neighbouring rows
is in neighbouring banks, without a swizzle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NoReturn

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.distribution import spread
from backends.gpu.threads.expressions import changed, renamed
from backends.gpu.threads.lifetimes import overlapped
from backends.gpu.threads.products import UNROLLED
from backends.gpu.threads.staging import COPY_BYTES, Staging, advanced, run_of
from backends.gpu.threads.vectors import contiguous
from backends.gpu.tile import Name
from ir.nest.bulk import DIRECT_PANEL
from ir.spec import DTYPES, Apply, Expr, Number

RUN = 4  # elements along K that a thread stores at once where it transposes a tile
DIRECT_BYTES = 8  # bytes of a run that is stored without staging in shared memory


@dataclass(frozen=True, slots=True)
class _Held:
    """A tile in flight to shared memory."""

    tile: to.Shared
    loaded: Name  # the fragment into which it is loaded
    stored: Name  # the same registers in the order of the tile's axes


class RegisterStaging(Staging):
    """Lowering for copies through registers."""

    def __init__(self, thread_bytes: int, *args: Any):
        super().__init__(*args)
        self.thread_bytes = thread_bytes  # of one direct copy by a thread
        self.held: list[_Held] = []  # tiles that an iteration loads for a later one
        self.depth_of = {  # K of the matmul of each staged variable
            self.source(o): m.k for m in self.facts.matmuls.values() for o in m.operands
        }

    def statement(self, s: of.Statement) -> None:
        """Appends the statements for one statement of the tile program; no asynchronous copy remains pending."""
        super().statement(s)
        self.waiting = False

    def placed(
        self, once: Sequence[to.Statement], body: Sequence[to.Statement]
    ) -> dict[Name, to.Shared]:
        """The tiles, where tiles that are never live together overlap."""
        return overlapped(self.shared, once, body, self._bytes)

    def target(self, s: of.Load, stages: int) -> tuple[to.Shared, str, tuple[to.Axis, ...]]:
        """The tile to which a load is stored, with one buffer less than stages; its contiguous axis
        in global memory; and the distribution of the load over threads.

        16-bit operands have K contiguous in shared memory, since instructions take runs along K.
        Where another axis is contiguous in global memory, a thread loads a block of both axes and
        stores it transposed.
        """
        along = contiguous(s.place) or self.facts.indices(s.name)[-1]
        if self.direct(s.name):
            return self._direct_target(s, along, stages)
        inner = self._transposed(s.name, along)
        if not inner:
            return super().target(s, max(1, stages - 1))
        operand, plan = self.operands[s.name]
        name = Name("shared", s.name.stem, copy=s.name.copy)
        self.tile(name, s.name, operand, plan, inner, max(1, stages - 1))
        tile = self.shared[name]
        return tile, along, self._block(tile, along, inner)

    def _transposed(self, name: Name, along: str) -> str:
        """The axis along which a staged operand is contiguous in shared memory, if it is another
        one than in global memory; else empty."""
        if name not in self.facts.staged or name not in self.operands:
            return ""
        operand, plan = self.operands[name]
        inner, size = self.depth_of[name], DTYPES[self.typing.known[name][0]]
        plain = len(inner) == 1 and all(len(g) == 1 for g in operand.groups if inner[0] not in g)
        if plan.instruction is None or size != 2 or not plain or along in inner:
            return ""
        return inner[0] if self.owners.widths[inner[0]] % RUN == 0 else ""

    def _block(self, tile: to.Shared, along: str, inner: str) -> tuple[to.Axis, ...]:
        """The distribution of a tile that is transposed, in the order of loading. Neighbouring
        threads take neighbouring runs along the inner axis, so that their stores are free of bank
        conflicts."""
        widths, size = self.owners.widths, DTYPES[tile.dtype]
        each = prod(widths[i] for i in tile.axes) // self.threads // RUN
        run = max(1, min(COPY_BYTES // size, widths[along] & -widths[along], each))
        bits, found = list(range(self.owners.bits)), {}
        for index, own in ((inner, RUN), (along, run), *((i, 1) for i in reversed(tile.axes))):
            if index not in found:
                count = min(len(bits), (widths[index] // own).bit_length() - 1)
                found[index] = self.axis(index, spread(bits[:count], own))
                bits = bits[count:]
        order = (*(i for i in tile.axes if i != along), along)
        return tuple(found[i] for i in order)

    def copy(self, s: of.Load, stage: Expr | None, stages: int = 1) -> None:
        """Loads a region in the distribution of a copy, and stores it where no loop prefetches."""
        if self.direct(s.name):
            super().copy(s, stage, stages)
            return
        tile, _, axes = self.target(s, stages)
        for axis in axes:
            self.place_copy(axis)
        place = self.place(s.place, {a.index: a for a in axes})
        name = Name("next", s.name.stem, copy=s.name.copy)
        self.fragment(name, tile.dtype, axes)
        vector = self.vector(s.place, axes, tile.dtype)
        self.put(to.Load(name, place, Number(0.0), vector, s.cache))
        order = tuple(next(a for a in axes if a.index == i) for i in tile.axes)
        held = _Held(tile, name, name if order == axes else self.temporary(tile.dtype, order))
        if stages > 1:
            self.held.append(held)
        else:
            self.found += self._stored((held,), None)

    def _stored(self, held: Sequence[_Held], stage: Expr | None) -> list[to.Statement]:
        """The statements that store loaded tiles to shared memory."""
        found: list[to.Statement] = []
        for one in held:
            if one.stored != one.loaded:
                axes = tuple(a.index for a in self.fragments[one.loaded].axes)
                found.append(to.Each(one.stored, to.Element(one.loaded, axes)))
            copies = self.copies(self.fragments[one.stored].axes)
            found.append(to.SharedStore(one.tile.name, one.stored, stage, copies))
        return found

    def fetch(self, s: to.SharedLoad) -> None:
        """Loads the part of an operand for one issue, in vectors along the tile's contiguous axis."""
        held, along = self.fragments[s.name], self.shared[s.tile].axes[-1]
        if held.axes[-1].index == along or all(a.index != along for a in held.axes):
            self.put(s)
            return
        order = (
            *(a for a in held.axes if a.index != along),
            *(a for a in held.axes if a.index == along),
        )
        name = self.temporary(held.dtype, order)
        self.put(replace(s, name=name))
        self.put(to.Each(s.name, to.Element(name, tuple(a.index for a in order))))

    def _through_shared(self, s: of.Store) -> tuple[to.Axis, ...]:
        """As in the base class, except that registers with runs of 8 bytes are stored directly, and
        so is a tile for which the block has no room beside the operands."""
        axes = super()._through_shared(s)
        if not axes:
            return ()
        held = self.fragments[self.variable(s.value)]  # type: ignore[arg-type]
        along, size = axes[-1].index, DTYPES[held.dtype]
        run = next(run_of(a) for a in held.axes if a.index == along)
        if run * size >= DIRECT_BYTES and s.epilogue is None:
            return ()
        taken = sum(self._bytes(t) for t in self.shared.values())
        elements = prod(self.owners.widths[a.index] for a in axes)
        if s.epilogue is not None and s.epilogue.columns:
            elements = elements // self.owners.widths[along] * s.epilogue.columns
        padded = elements + elements // self.owners.widths[along] * COPY_BYTES // size
        return axes if taken + padded * size <= self.shared_bytes else ()

    def _bytes(self, tile: to.Shared) -> int:
        """Bytes of a tile at the sizes for which the kernel is tuned, without padding."""
        widths = (self.owners.widths.get(i, 1) for i in tile.axes)
        return tile.stages * prod(widths) * DTYPES[tile.dtype]

    def copied(self, x: of.Load, least: int) -> bool:
        """Whether a load is prefetched: only matmul operands are, as other loads need no shared memory."""
        return x.name in self.facts.staged

    def direct(self, name: Name) -> int:
        """Bytes of a direct copy, for variables that the schedule copies directly; else 0."""
        rows = self.facts.rows.get(name.stem)
        return self.thread_bytes if rows is not None and rows.direct else 0

    def _direct_target(
        self, s: of.Load, along: str, stages: int
    ) -> tuple[to.Shared, str, tuple[to.Axis, ...]]:
        """The tile that direct copies fill, in panels, and their distribution: the runs of a
        wavefront's threads are in thread order."""
        name = Name("shared", s.name.stem, copy=s.name.copy)
        if s.name not in self.operands or self.depth_of[s.name] != (along,):
            _refuse_direct(s.name, "matmul operands that are contiguous along one axis K")
        if stages == 1:
            _refuse_direct(s.name, "loads of loops with 2 stages")
        operand, plan = self.operands[s.name]
        self.tile(name, s.name, operand, plan, along, stages)
        tile, widths = self.shared[name], self.owners.widths
        size = DTYPES[tile.dtype]
        run, panel = self.thread_bytes // size, DIRECT_PANEL // size
        fixed = all(
            isinstance(e, Number) and e.value == widths[i] for i, e in zip(tile.axes, tile.extents)
        )
        if not fixed or any(widths[i] & (widths[i] - 1) for i in tile.axes) or not run:
            _refuse_direct(
                s.name, f"tiles of powers of two, of elements of up to {self.thread_bytes} bytes"
            )
        if prod(widths[i] for i in tile.axes) < run << self.owners.warp_bits:
            _refuse_direct(
                s.name,
                f"tiles of {self.thread_bytes << self.owners.warp_bits} bytes, a copy of a warp",
            )
        order = [(along, panel // run), *((i, widths[i]) for i in reversed(tile.axes[:-1]))]
        order.append((along, widths[along] // panel))
        bits, own = list(range(self.copying_bits)), {i: [] for i in tile.axes}  # type: ignore[var-annotated]
        for index, count in order:
            taken = count.bit_length() - 1
            own[index] += bits[:taken]
            bits = bits[taken:]
        axes = (self.axis(i, spread(own[i], run if i == along else 1)) for i in tile.axes)
        return tile, along, tuple(axes)

    def _pipelined(self, s: of.Loop, ahead: list[of.Load], stages: int, flies: Name | None) -> None:
        direct = [x.name for x in ahead if self.direct(x.name)]
        if direct and stages != 2:
            _refuse_direct(direct[0], "loads of loops with 2 stages: a wait is for all copies")
        if direct:
            others = [x.name.stem for x in ahead if x.name not in direct]
            if others:
                _refuse_direct(direct[0], f"all loads of a loop, and `{others[0]}` is not")
            super()._pipelined(s, ahead, stages, flies)
            return
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        later, advance, (first, read, write) = self._ahead_of(s)
        fetched, buffers = to.Element(later[name]), stages - 1
        self.held.clear()
        loads = changed(self.copies_of(s.body, ahead, Number(0), stages), renamed(later))
        held = tuple(self.held)

        more = to.Guard(of.Check(fetched, below=high), loads)
        self.found += (to.Each(later[name], low), to.Barrier())
        ring = buffers > 1
        if ring:
            lead = (*loads, *self._stored(held, to.Element(first)))
            filled = to.Guard(of.Check(fetched, below=high), lead)
            count = buffers - 1
            self.put(
                to.Loop(first, Number(0), Number(count), 1, (filled, advance), count < UNROLLED)
            )
            self.found += (to.Each(read, Number(0)), to.Each(write, Number(count)))
            self.stages |= {x.name: to.Element(read) for x in ahead}
        self.found += (more, advance)
        body: list[to.Statement] = [to.Barrier()]
        if ring:
            due = Apply("add", (to.Element(name), Number((buffers - 1) * s.tile)))
            body.append(
                to.Guard(of.Check(due, below=high), tuple(self._stored(held, to.Element(write))))
            )
        else:
            body += self._stored(held, None)
        body += [more, advance]
        body += [advanced(write, buffers)] if ring else []
        body += self.block(s.body)
        body += [advanced(read, buffers)] if ring else []
        self.put(to.Loop(name, low, high, s.tile, tuple(body)))


def _refuse_direct(name: Name, allowed: str) -> NoReturn:
    """Raises BackendError where a tensor cannot be copied directly to shared memory."""
    what = f"`{name.stem}` is not copied to shared memory past the registers: such copies are of {allowed}"
    raise BackendError("emit", f"{what}; drop copy({name.stem}, by=lds)")
