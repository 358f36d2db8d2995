"""Staging for machines whose copies go through registers: loads run ahead of the stores to shared
memory.

A loop with S stages has S - 1 buffers in shared memory, and one tile on its way in registers. Each
iteration stores the tile that the iteration before has loaded, starts the loads of the next one, and
multiplies while these are in flight.
"""

from __future__ import annotations

from math import prod

from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.products import UNROLLED
from backends.gpu.threads.staging import COPY_BYTES, Staging, advanced, renamed, run_of
from backends.gpu.tile import Name
from ir.spec import DTYPES, Apply, Expr, Number

DIRECT_BYTES = 8  # of a run that is stored without the help of shared memory


class RegisterStaging(Staging):
    """Lowering where no copy passes the registers."""

    def __init__(self, *args: object):
        super().__init__(*args)  # type: ignore[arg-type]
        self.loaded: list[
            tuple[to.Shared, Name]
        ] = []  # tiles, with the fragments on their way there

    def statement(self, s: of.Statement) -> None:
        """Adds what one statement of the tile program becomes; no copy is left to wait for."""
        super().statement(s)
        self.waiting = False

    def target(self, s: of.Load, stages: int) -> tuple[to.Shared, str, tuple[to.Axis, ...]]:
        """The tile that a load is stored to, with one buffer less than there are stages."""
        return super().target(s, max(1, stages - 1))

    def copy(self, s: of.Load, stage: Expr | None, stages: int = 1) -> None:
        """The load of a region in the distribution of a copy, and its store where no loop runs
        ahead."""
        tile, _, axes = self.target(s, stages)
        for axis in axes:
            self.place_copy(axis)
        place = self.place(s.place, {a.index: a for a in axes})
        name = self.fragment(Name("next", s.name.stem, copy=s.name.copy), tile.dtype, axes)
        vector = self.vector(s.place, axes, tile.dtype)
        self.put(to.Load(name, place, Number(0.0), vector))
        if stages > 1:
            self.loaded.append((tile, name))
        else:
            self.put(to.SharedStore(tile.name, name, copies=self.copies(axes)))

    def _through_shared(self, s: of.Store) -> tuple[to.Axis, ...]:
        """As for all; registers that make runs of 8 bytes are stored as they are, and so is a tile
        that the block has no room for beside the operands."""
        axes = super()._through_shared(s)
        if not axes:
            return ()
        held = self.fragments[self.variable(s.value)]  # type: ignore[arg-type]
        along, size = axes[-1].index, DTYPES[held.dtype]
        run = next(run_of(a) for a in held.axes if a.index == along)
        if run * size >= DIRECT_BYTES:
            return ()
        taken = sum(self._bytes(t) for t in self.shared.values())
        elements = prod(self.owners.widths[a.index] for a in axes)
        padded = elements + elements // self.owners.widths[along] * COPY_BYTES // size
        return axes if taken + padded * size <= self.shared_bytes else ()

    def _bytes(self, tile: to.Shared) -> int:
        """Bytes of a tile at the sizes that the kernel is tuned for; no row's padding."""
        widths = (self.owners.widths.get(i, 1) for i in tile.axes)
        return tile.stages * prod(widths) * DTYPES[tile.dtype]

    def copied(self, x: of.Load) -> bool:
        """Whether a load runs ahead: those of operands alone, as others need no shared memory."""
        return x.name in self.facts.staged

    def _pipelined(self, s: of.Loop, ahead: list[of.Load], stages: int, flies: Name | None) -> None:
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        later = self._later(s)
        fetched, buffers = to.Element(later[name]), stages - 1
        self.rings += 1
        first, read, write = (
            self.fragment(Name(sort, name.stem, copy=self.rings), "i32")
            for sort in ("stage", "read_stage", "write_stage")
        )
        advance = to.Each(later[name], Apply("add", (fetched, Number(s.tile))))
        self.loaded.clear()
        loads = renamed(self._copies(s, ahead, Number(0), stages), later)
        held = tuple(self.loaded)

        def stored(stage: Expr | None) -> tuple[to.Statement, ...]:
            return tuple(
                to.SharedStore(tile.name, held_in, stage, self.copies(self.fragments[held_in].axes))
                for tile, held_in in held
            )

        more = to.Guard(of.Check(fetched, below=high), loads)
        self.found += (to.Each(later[name], low), to.Barrier())
        ring = buffers > 1
        if ring:
            lead = (*loads, *stored(to.Element(first)))
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
            body.append(to.Guard(of.Check(due, below=high), stored(to.Element(write))))
        else:
            body += stored(None)
        body += [more, advance]
        body += [advanced(write, buffers)] if ring else []
        body += self.block(s.body)
        body += [advanced(read, buffers)] if ring else []
        self.put(to.Loop(name, low, high, s.tile, tuple(body)))
