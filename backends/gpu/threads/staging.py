"""Staging: pipelined copies of matmul operands from global to shared memory.

A loop with S stages issues the copies of its first S - 1 iterations in its prologue. Each iteration waits for its own
copies, then issues those of S - 1 iterations later into the stage that the iteration before has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.distribution import Spread, bits_of, spread
from backends.gpu.threads.expressions import changed, renamed
from backends.gpu.threads.facts import FRAGMENTS, tiles_in
from backends.gpu.threads.lower import EXCHANGE
from backends.gpu.threads.parts import part_of
from backends.gpu.threads.plans import PANEL_BYTES
from backends.gpu.threads.products import UNROLLED, Matmuls
from backends.gpu.threads.signals import Signal, TensorMap
from backends.gpu.threads.vectors import contiguous
from backends.gpu.tile import Name
from ir.spec import DTYPES, Apply, Expr, Number, Size

COPY_BYTES = 16  # bytes of one copy by one thread
NO_PARTS: Mapping[str, Expr] = MappingProxyType({})
SMALL_BYTES = 64  # least bytes of a tile that is prefetched where a loop prefetches others


class Staging(Matmuls):
    """Lowering with copies to shared memory."""

    def __init__(self, shared_bytes: int, *args: Any):
        super().__init__(*args)
        self.shared_bytes = shared_bytes  # that a block may have
        # Statements that define an index's positions
        self.headers: dict[str, list[of.Statement]] = {}
        self.waiting = False  # whether copies are pending that nothing waits for yet
        self.rings = 0  # pipelined loops
        self.subtiles = 0  # loops over parts of stored tiles
        self.nesting = 0  # loops around the statement
        self.first: list[to.Statement] = []  # before the first tile
        self.last: list[to.Statement] = []  # after each tile
        self.signals: list[Signal] = []  # between thread roles
        self.maps: dict[Name, TensorMap] = {}  # of tensors that the TMA moves
        self.copying_bits = self.owners.bits  # bits of the thread index among the copying threads
        # Axes of copies whose positions are computed before their loop
        self.settled: set[to.Axis] = set()
        self.operands = {  # of staged variables, with the plan of their matmul
            self.source(operand): (operand, self.plans[key])
            for key, m in self.facts.matmuls.items()
            for operand in m.operands
        }

    def producer(self) -> to.Producer | None:
        """The role of threads that only fill shared memory; None where there is none."""
        return None

    def meets(self) -> tuple[to.Statement, ...]:
        """Cluster barriers at the beginning and end of a block."""
        return ()

    def before(self, statements: Iterable[of.Statement]) -> tuple[to.Statement, ...]:
        """The statements before the first tile."""
        return self.block(statements)

    def shares(self) -> tuple[to.Statement, ...]:
        """The statements that determine the tiles of a block's share of a loop (stream-K)."""
        return self.block(self.launch.shares.before) if self.launch.shares else ()

    def require_all(self) -> None:
        """Raises BackendError where a decision of the schedule could not be realised."""
        stems = {n.stem for n in self.shared if n.sort == "shared"}
        for name in (n for n in self.facts.rows if n not in stems):
            raise BackendError("emit", f"`{name}` is not in shared memory: its rows lie nowhere")

    def placed(
        self, once: Sequence[to.Statement], body: Sequence[to.Statement]
    ) -> dict[Name, to.Shared]:
        """The tiles, each in its region of shared memory."""
        return self.shared

    def statement(self, s: of.Statement) -> None:
        """Appends the statements for one statement of the tile program."""
        staged = isinstance(s, of.Load) and s.name in self.facts.staged
        if self.waiting and not staged:
            self.put(to.Commit())
            self.put(to.Wait(0))
            self.waiting = False
        match s:
            case of.Load() if s.name in self.depths:
                if not staged:  # its loop has copied it
                    tile = Name("shared", s.name.stem, copy=s.name.copy)
                    self.put(to.SharedLoad(self.variable(s.name), tile, self.stages.get(s.name)))
                return
            case of.Load() if staged:
                self.copy(s, None)
                self.waiting = True
                return
            case of.Positions(name):
                self.headers[name.stem] = [s]
            case of.Bounds(name):
                self.headers[name.stem].append(s)
        super().statement(s)

    def store(self, s: of.Store) -> None:
        """A store; where threads hold short runs of memory it goes through shared memory."""
        decided = s.epilogue.by if s.epilogue else ""
        axes = () if decided == "registers" else self._through_shared(s)
        if not axes and decided == "shared":
            tensor = s.place.tensor.stem  # type: ignore[attr-defined]
            raise BackendError("emit", f"`{tensor}` is no tile that passes through shared memory")
        if not axes:
            super().store(s)
            return
        order = tuple(a.index for a in axes)
        self.in_subtiles(s, order[-1], lambda held, start: self._passed(s, order, held, start))

    def _passed(
        self, s: of.Store, order: tuple[str, ...], held: to.Fragment, start: Expr | None
    ) -> None:
        """The store of a fragment through shared memory. order: its axes. start: its first position along the last of
        them."""
        assert isinstance(s.value, Name), "else it does not pass"
        widths = {a.index: a.width for a in held.axes}
        size = DTYPES[held.dtype]
        run = self.tuned_run(s.place, order[-1], COPY_BYTES // size)
        axes = self.distributed(order, order[-1], size, widths, run)
        tile = Name("shared", "stored", copy=len(self.shared))
        padding = _padding(self.owners.of(s.value, order[-1]), DTYPES[held.dtype])
        name = self.temporary(held.dtype, axes)
        self.passed(tile, held.name, name, self.free_region(), padding)
        for axis in axes:
            self.place_copy(axis, start if axis.index == order[-1] else None)
        place = self.place(s.place, {a.index: a for a in axes})
        value = to.Element(name, order)
        vector = self.vector(s.place, axes, held.dtype)
        self.put(to.Store(place, value, axes, self.copies(axes), vector=vector, cache=s.cache))

    def in_subtiles(
        self, s: of.Store, along: str, store: Callable[[to.Fragment, Expr | None], None]
    ) -> None:
        """Stores a tile in parts of as many columns as the schedule decides, in a loop over its registers. store:
        stores a fragment, given its first column."""
        held = self.fragments[self.variable(s.value)]  # type: ignore[arg-type]
        columns = s.epilogue.columns if s.epilogue else 0
        if not columns:
            store(held, None)
            return
        axis = next(a for a in held.axes if a.index == along)
        part, count = part_of(axis, columns)
        self.subtiles += 1
        number = self.fragment(Name("subtile", along, copy=self.subtiles), "i32")
        name = self.temporary(held.dtype, (part if a is axis else a for a in held.axes))
        with self.apart() as body:
            first = self.scalar(Apply("mul", (number, Number(count))))
            self.put(to.Part(name, held.name, along, first))
            store(self.fragments[name], Apply("mul", (number, Number(columns))))
        parts = Number(int(axis.width.value) // columns)  # type: ignore[attr-defined]
        self.put(to.Loop(number, Number(0), parts, 1, tuple(body), unrolled=True))

    def free_region(self) -> str:
        """The shared memory region for a tile that is stored: outside of all loops that of a pipeline, which has ended."""
        rings = [t.region for t in self.shared.values() if t.stages > 1]
        return rings[0] if rings and not self.nesting else EXCHANGE

    def _through_shared(self, s: of.Store) -> tuple[to.Axis, ...]:
        """The distribution in which a tile is stored with 16-byte or the widest aligned vectors. Empty where it already
        has 16-byte runs, or where it is too small to be worth a barrier."""
        along = contiguous(s.place)
        if s.reduction or not isinstance(s.value, Name) or s.value.sort not in FRAGMENTS:
            return ()
        held = self.fragments[self.variable(s.value)]
        axis = next((a for a in held.axes if a.index == along), None)
        if axis is None or tiles_in(s.place):
            return ()
        widths = [self.owners.widths[a.index] for a in held.axes]
        run, size = run_of(axis), DTYPES[held.dtype]
        enough = prod(widths) * size >= 2 * COPY_BYTES * self.threads
        wide = self.owners.widths[along] * size >= 2 * COPY_BYTES
        if s.epilogue is None and (run * size >= COPY_BYTES or not enough or not wide):
            return ()
        order = (*(a.index for a in held.axes if a is not axis), along)
        return self.distributed(
            order, along, size, most=self.tuned_run(s.place, along, COPY_BYTES // size)
        )

    def copy(self, s: of.Load, stage: Expr | None, stages: int = 1) -> None:
        """The copy of a region into its tile, with the positions that it needs."""
        tile, along, axes = self.target(s, stages)
        for axis in axes:
            self.place_copy(axis)
        place = self.place(s.place, {a.index: a for a in axes})
        vector = None
        if tile.axes[-1] == along:
            vector = self.run(s.place, along, run_of(axes[-1]))
        copy: tuple[to.Statement, ...]
        copy = (to.Copy(tile.name, place, axes, stage, vector, s.cache, self.direct(s.name)),)
        if self.dtype_of(s.place) != tile.dtype:  # the TMA would round as it copies
            copy = self._rounded(s, tile.name, place, axes, stage, vector)
        # Active threads: the first ones, as bits are assigned in order
        busy = 1 << sum(len(bits_of(a)) for a in axes)
        if busy < 1 << self.copying_bits:
            copy = (to.Guard(of.Check(to.Thread(), below=Number(busy)), copy),)
        self.found += copy

    def _rounded(
        self,
        s: of.Load,
        tile: Name,
        place: of.Place,
        axes: tuple[to.Axis, ...],
        stage: Expr | None,
        vector: to.Vector | None,
    ) -> tuple[to.Statement, ...]:
        """The copy of an f32 region into a tf32 tile, through registers."""
        held, short = (self.temporary(dtype, axes) for dtype in ("f32", "tf32"))
        element = to.Element(held, tuple(a.index for a in axes))
        return (
            to.Load(held, place, s.other, vector, s.cache),
            to.Each(short, of.Compute("round_tf32", (element,), floats=True)),
            to.SharedStore(tile, short, stage),
        )

    def direct(self, name: Name) -> int:
        """Bytes of direct copies, in which the threads of a warp fill consecutive addresses; 0: each thread has its own
        address."""
        return 0

    def target(self, s: of.Load, stages: int) -> tuple[to.Shared, str, tuple[to.Axis, ...]]:
        """The tile to which a load is copied, its contiguous axis, and the distribution of the copy over threads."""
        indices = self.facts.indices(s.name)
        along = contiguous(s.place) or indices[-1]
        name = Name("shared", s.name.stem, copy=s.name.copy)
        if s.name in self.facts.staged:
            operand, plan = self.operands[s.name]
            self.tile(name, s.name, operand, plan, along, stages)
        elif name not in self.shared:
            dtype = self.typing.known[s.name][0]
            order = (*(i for i in indices if i != along), along)
            extents = tuple(map(self.width, order))
            padding = _padding(self.owners.of(s.name, along), DTYPES[dtype])
            region = f"{name.stem}_{name.copy}"
            made = to.Shared(name, dtype, order, extents, region, stages, padding=padding)
            self.shared[name] = self.in_rows(made, s.name) if self.rows_of(s.name) else made
        tile = self.shared[name]
        return tile, along, self.distributed(tile.axes, along, DTYPES[tile.dtype])

    def place_copy(self, axis: to.Axis, start: Expr | None = None) -> None:
        """The positions of an axis of a copy, unless its loop already has them. start: an offset in addition to the
        origin."""
        if axis in self.settled:
            return
        if axis not in self.distributions.get(axis.index, ()):
            self.passing.add(axis)
        for header in self.headers[axis.index]:
            self.header(header, axis, start)

    def distributed(
        self,
        order: tuple[str, ...],
        along: str,
        element_bytes: int,
        parts: Mapping[str, Expr] = NO_PARTS,
        most: int = 0,
    ) -> tuple[to.Axis, ...]:
        """The distribution of a copy between memories: neighbouring threads take neighbouring runs along the contiguous
        axis. parts: widths of parts of a tile. most: elements of a run; 0: 16 bytes."""
        most = most or COPY_BYTES // element_bytes
        bits, threads = list(range(self.copying_bits)), 1 << self.copying_bits
        found: dict[str, to.Axis] = {}
        for index in (along, *(i for i in reversed(order) if i != along)):
            given = parts.get(index)
            known = isinstance(given, Number)
            width = int(given.value) if known else self.owners.widths[index]  # type: ignore[union-attr]
            run = min(most, width & -width) if index == along else 1
            count = min(len(bits), (width // run).bit_length() - 1)
            found[index] = spread(bits[:count], run).axis(
                index, given or self.width(index), threads
            )
            bits = bits[count:]
        return tuple(found[i] for i in order)

    def header(self, s: of.Statement, axis: to.Axis, start: Expr | None = None) -> None:
        """The positions of an index in the distribution of a copy."""
        match s:
            case of.Positions(_, origin):
                both = origin is not None and start is not None
                self.position(axis, Apply("add", (origin, start)) if both else origin or start)  # type: ignore[arg-type]
            case of.Bounds(_, _, end, even):
                copy = self.positions(axis)
                name = self.fragment(Name("mask", axis.index, copy=copy), "b8", (axis,))
                self.put(to.Each(name, self.inside(axis, end, even)))

    # -- pipelines ----------------------------------------------------------------------------

    def loop(self, s: of.Loop) -> None:
        """A loop; with stages its copies are prefetched."""
        self.nesting += 1
        self._looped(s)
        self.nesting -= 1

    def _looped(self, s: of.Loop) -> None:
        ahead = self._ahead(s)
        if s.stages < 2 or not ahead or not self._independent(s, ahead):
            super().loop(s)
            return
        flies = self.flies(s, ahead)
        if self.shared_out(s, ahead, flies):
            return
        # A matmul in flight reads the stage of the iteration before, so copies go to the stage before that. Another
        # buffer is added for it where it fits.
        stages = s.stages + 1 if flies and self._fits(ahead, s.stages + 1) else s.stages
        flies = flies if stages > 2 else None
        self.depths |= {x.name: stages for x in ahead}
        self._settle(s, ahead, stages)
        self._pipelined(s, ahead, stages, flies)
        self.settled.clear()

    def shared_out(self, s: of.Loop, ahead: list[of.Load], flies: Name | None) -> bool:
        """Whether a loop was given to thread roles, as some lowerings do. flies: the result of a matmul that may be in
        flight when its iteration ends."""
        return False

    def _settle(self, s: of.Loop, ahead: list[of.Load], stages: int) -> None:
        """Computes loop-invariant positions of copies before the loop."""
        moving = {x.name.stem for x in s.body if isinstance(x, of.Positions)}
        for axis in (a for x in ahead for a in self.target(x, stages)[2]):
            if axis.index not in moving and axis not in self.settled:
                self.place_copy(axis)
                self.settled.add(axis)

    def _ahead_of(self, s: of.Loop) -> tuple[dict[Name, Name], to.Each, list[Name]]:
        """For a pipelined loop: the scalars of its iteration, with names for those of the prefetched one; the statement
        that advances these; and scalars for the stages that are filled first, read and filled."""
        # In program order: the order of a set differs between processes.
        own = [s.name, *(x.name for x in s.body if isinstance(x, of.StepOrigin))]
        own += [x.name for x in s.body if isinstance(x, of.Assign) and x.name.sort == "origin"]
        later = {n: replace(n, copy=n.copy + 1) for n in own}
        for n in later.values():
            self.fragment(n, "i32")
        self.rings += 1
        sorts = ("stage", "read_stage", "write_stage")
        stages = [self.fragment(Name(n, s.name.stem, copy=self.rings), "i32") for n in sorts]
        next_one = Apply("add", (to.Element(later[s.name]), Number(s.tile)))
        return later, to.Each(later[s.name], next_one), stages

    def _pipelined(self, s: of.Loop, ahead: list[of.Load], stages: int, flies: Name | None) -> None:
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        later, advance, (first, read, write) = self._ahead_of(s)
        fetched = to.Element(later[name])

        def started(stage: Name) -> tuple[to.Statement, ...]:
            copies = changed(
                self.copies_of(s.body, ahead, to.Element(stage), stages), renamed(later)
            )
            return (to.Guard(of.Check(fetched, below=high), copies), to.Commit(), advance)

        lead = stages - 2 if flies else stages - 1
        start = started(first)
        self.found += (
            to.Each(later[name], low),
            to.Barrier(),
            to.Loop(first, Number(0), Number(lead), 1, start, lead < UNROLLED),
            *(to.Each(read, Number(0)), to.Each(write, Number(lead))),
        )
        self.stages |= {x.name: to.Element(read) for x in ahead}
        copied, consumed = started(write), self.block(s.body)
        if flies:
            consumed = in_flight(consumed)
        moved = (advanced(write, stages), *consumed, advanced(read, stages))
        body = (to.Wait(lead - 1), to.Barrier(), *copied, *moved)
        self.put(to.Loop(name, low, high, s.tile, body, certain=s.certain or certain(low, high)))
        if flies:
            self.put(to.WarpgroupWait(flies))

    def _ahead(self, s: of.Loop) -> list[of.Load]:
        """The prefetched loads of a pipelined loop: operands and large tiles, and if there are any also small ones, for
        which each iteration would otherwise wait."""
        loads = [x for x in s.body if isinstance(x, of.Load)]
        if not any(self.copied(x, COPY_BYTES * self.threads) for x in loads):
            return []
        return [x for x in loads if self.copied(x, SMALL_BYTES)]

    def copied(self, x: of.Load, least: int) -> bool:
        """Whether a load can be an asynchronous copy: that of an operand, or one of at least so many bytes that is 0
        out of bounds, as copies are."""
        if x.name in self.facts.staged:
            return True
        indices = self.facts.indices(x.name)
        size = prod(self.owners.widths[i] for i in indices)
        size *= DTYPES[self.typing.known[x.name][0]]
        return not tiles_in(x.place) and not x.other.value and size >= least

    def _fits(self, ahead: list[of.Load], stages: int) -> bool:
        """Whether tiles with so many stages fit the shared memory of a block."""
        taken = 0
        for x in ahead:
            indices = self.facts.indices(x.name)
            if not all(isinstance(self.width(i), Number) for i in indices):
                return False
            elements = prod(self.owners.widths[i] for i in indices)
            taken += stages * elements * DTYPES[self.typing.known[x.name][0]]
        return taken <= self.shared_bytes

    def flies(self, s: of.Loop, ahead: list[of.Load], joint: bool = False) -> Name | None:
        """The result of a matmul that may be in flight when its iteration ends: the loop does nothing else, and has a
        stage that the matmul does not read. None: there is none. joint: allows regrouping of registers, where several
        axes form one axis."""
        work = [x for x in s.body if not isinstance(x, of.StepOrigin | of.Positions | of.Bounds)]
        work = [x for x in work if x not in ahead]
        work = [x for x in work if not (isinstance(x, of.Assign) and x.name in self.facts.at_use)]
        work = [x for x in work if not (isinstance(x, of.Assign) and x.name.sort == "origin")]
        if len(work) != 1 or id(work[0]) not in self.facts.matmuls:
            return None
        m = self.facts.matmuls[id(work[0])]
        plain = not m.batch and (joint or all(len(g) == 1 for g in (m.m, m.n)))
        # An operand that goes through registers is stored to the same tile in each iteration.
        ring = {x.name for x in ahead} & self.facts.staged
        in_ring = ring >= {self.source(m.a), self.source(m.b)}
        key = id(work[0])
        flies = m.adds and plain and in_ring and key in self.anchored and self.plans[key].warpgroup
        return m.name if flies else None

    def copies_of(
        self, body: Iterable[of.Statement], ahead: list[of.Load], stage: Expr, stages: int
    ) -> tuple[to.Statement, ...]:
        """The statements that issue the copies of one iteration, with the positions that they need."""
        with self.apart() as found:
            for x in body:
                match x:
                    case of.StepOrigin():
                        super().statement(x)
                    case of.Assign(name) if name.sort == "origin":
                        super().statement(x)
                    case of.Positions(name):
                        self.headers[name.stem] = [x]
                    case of.Bounds(name, _, end):
                        self.headers[name.stem].append(x)
                        self.ended(name.stem, end)
                    case of.Load() if x in ahead:
                        self.copy(x, stage, stages)
        return tuple(found)

    def _independent(self, s: of.Loop, ahead: list[of.Load]) -> bool:
        """Whether copies depend on nothing that the body computes except positions."""
        made = {x.name for x in s.body if isinstance(x, of.Assign | of.Load)}
        made = {n for n in made if n.sort in (*FRAGMENTS, "low", "high", "dim")}
        read = {n for x in ahead for n in x.place.walk() if isinstance(n, Name)}
        ends = {
            n
            for x in s.body
            if isinstance(x, of.Bounds)
            for n in x.end.walk()
            if isinstance(n, Name)
        }
        return not made & (read | ends)


def in_flight(block: to.Block) -> to.Block:
    """The block, with its matmul in flight when it ends."""
    matmul = to.WarpgroupMultiply
    return tuple(replace(x, pending=1) if isinstance(x, matmul) else x for x in block)


def certain(low: Expr, high: Expr) -> bool:
    """Whether a loop has an iteration at all positive sizes."""
    return low == Number(0) and isinstance(high, Size)


def advanced(slot: Name, stages: int) -> to.Each:
    """Advances to the next stage of a circular buffer."""
    after = Apply("add", (to.Element(slot), Number(1)))
    last = of.Compute("eq", (to.Element(slot), Number(stages - 1)))
    return to.Each(slot, of.Compute("where", (last, Number(0), after)))


def run_of(axis: to.Axis) -> int:
    """Consecutive registers that are consecutive positions."""
    extent, stride = axis.register.flat[0]
    return extent if stride == 1 else 1


def _padding(axis: Spread, element_bytes: int) -> int:
    """Elements of padding between rows: as many bytes as the threads that share a row hold of it, so that threads with
    neighbouring rows access different banks."""
    run = axis.modes[0][0] if axis.modes and axis.modes[0][1] == 1 else 1
    threads = 1
    for place, pair in enumerate(axis.bits):
        if pair != (place, run << place):
            break
        threads *= 2
    held = run * threads * element_bytes
    return (held if COPY_BYTES < held < PANEL_BYTES else COPY_BYTES) // element_bytes
