"""Warp specialization: producer threads fill stages of shared memory, consumer threads only compute.

The roles share a pipelined loop whose loads are all boxes of tensors. A producer waits until a stage is
empty, and has the TMA fill it. The block's other threads, the consumers, wait until it is full, and release
it when they have read it. Two signals (mbarriers) of a circular buffer of stages track this:

    producer:  await empty[s];  copy boxes, which arrive at full[s];   s = next
    consumer:  await full[s];   multiply;  arrive at empty[s];         s = next

A box that is loaded outside of loops has a circular buffer with one stage. At sizes at which the TMA cannot
take a tensor (rows that are no multiples of 16 bytes), the producers copy as other threads do, into the same
circular buffer, through the caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.ahead import Ahead, parts_ahead
from backends.gpu.threads.boxes import BOXES, Boxed, map_of, origins
from backends.gpu.threads.facts import FRAGMENTS
from backends.gpu.threads.lower import EXCHANGE
from backends.gpu.threads.overlaps import Overlap, above, overlap
from backends.gpu.threads.prune import reads
from backends.gpu.threads.rings import Ring
from backends.gpu.threads.signals import Signal
from backends.gpu.threads.staging import COPY_BYTES, in_flight
from backends.gpu.tile import Name
from backends.gpu.values import scaled, times
from ir.nest.nest import Roles
from ir.spec import Apply, Expr, Number, Size
from machines.gpu.matmuls import AHEAD_STAGES

PRODUCERS = WARPGROUP = 128  # threads: registers move between roles of whole warpgroups
BOX_REGISTERS, COPY_REGISTERS = 40, 88  # of a producer: to issue boxes, or to copy by itself
MOST_REGISTERS, GRANULE = 240, 8  # most registers of a consumer; step of reallocation


class Producers(Boxed):
    """Lowering with producers, where there are loads for them."""

    def __init__(self, registers: int, groups: int, roles: Roles | None, *args: Any):
        super().__init__(*args)
        self.registers = registers  # of one multiprocessor
        self.groups = groups  # of consumers, each with the block's number of compute threads
        self.roles = roles  # as decided
        self.producers = roles.producers if roles else PRODUCERS  # threads
        self.fill_first: list[to.Statement] = []  # of the producers, before the first tile
        self.fills: list[to.Statement] = []  # the same for each tile, in the enclosing loops
        self.own_rings: list[Ring] = []  # circular buffers that they fill, one for each loop
        self.around: list[_Loop] = []  # loops around the statement
        self.closed = 0  # enclosing blocks that not all tiles execute, or that run once
        before = self.launch.shares.before if self.launch.shares else ()
        self.grid = {s.name for s in (*before, *self.launch.grid) if isinstance(s, of.Assign)}

    def producer(self) -> to.Producer | None:
        """The role of the threads that fill shared memory; None where they have nothing to fill."""
        if not self.fills:
            return None
        grid = self.block(self.launch.grid)
        first = (*self.shares(), *self.meets(), *self.fill_first)
        body = (*grid, *self.fills)
        return to.Producer(self.producers, self._moved(), first, body, self.meets())

    def _moved(self) -> tuple[Expr, Expr] | None:
        """Registers of each producer and of each consumer after reallocation. None where all keep their
        registers: where these suffice, where they are too few to give any away, or where consumers and
        producers share a warpgroup, whose warps all have the same number."""
        consumers = self.threads * self.groups
        begins_with = self.registers // (consumers + self.producers)
        decided = self.roles.registers if self.roles else 0
        shared = (self.threads | self.producers) % WARPGROUP
        if shared or not COPY_REGISTERS <= begins_with <= MOST_REGISTERS:
            if decided:
                has = f"each thread begins with {begins_with}, or roles share a warpgroup"
                raise BackendError("emit", f"producers give no registers away: {has}")
            return None
        of_boxes = decided or BOX_REGISTERS
        boxes, copies = (
            Number(
                min(MOST_REGISTERS, (self.registers - self.producers * own) // consumers)
                // GRANULE
                * GRANULE
            )
            for own in (of_boxes, COPY_REGISTERS)
        )
        given = of.Compute("where", (BOXES, Number(of_boxes), Number(COPY_REGISTERS)))
        return given, boxes if boxes == copies else of.Compute("where", (BOXES, boxes, copies))

    def require_all(self) -> None:
        """Raises BackendError where a decision of the schedule could not be realised."""
        super().require_all()
        if self.roles and not self.fills:
            raise BackendError("emit", "there are no producers: no load in bulk is given to them")
        if self.later:
            what = "a matmul is not done one iteration later: its loop copies nothing in bulk"
            raise BackendError("emit", f"{what}, or no warpgroup multiplies it")

    def before(self, statements: Iterable[of.Statement]) -> tuple[to.Statement, ...]:
        """The statements before the first tile, in which producers have no part."""
        self.closed += 1
        self.nesting += 1
        found = super().before(statements)
        self.closed -= 1
        self.nesting -= 1
        return found

    def free_region(self) -> str:
        """The shared memory region for a tile that is stored. It is no pipeline's region in persistent
        blocks, where producers fill stages while others still store."""
        return EXCHANGE if self.fills and self.launch.resident else super().free_region()

    # -- what is shared out -------------------------------------------------------------------

    def statement(self, s: of.Statement) -> None:
        """Appends the statements for one statement of the tile program."""
        if isinstance(s, of.Load) and not self.nesting and s.name not in self.depths:
            if not self.closed and self._shareable((), [s]):
                self._alone(s)
        guarded = isinstance(s, of.Guard)  # only some tiles execute its loops and loads
        self.closed += guarded
        super().statement(s)
        self.closed -= guarded

    def loop(self, s: of.Loop) -> None:
        """A loop; producers execute it too, where they have something to fill in it."""
        outer, self.fills = self.fills, []
        self.around.append(_Loop(s))
        super().loop(s)
        own = self.around.pop()
        inner, self.fills = self.fills, outer
        if inner and not own.filled:
            origins = self.copies_of(s.body, [], Number(0), 1)
            inner = [self._as_loop(s, (*origins, *inner))]
        self.fills += inner

    def _as_loop(self, s: of.Loop, body: tuple[to.Statement, ...]) -> to.Loop:
        low, high = self.scalar(s.low), self.scalar(s.high)
        return to.Loop(self.variable(s.name), low, high, s.tile, body)

    def shared_out(self, s: of.Loop, ahead: list[of.Load], flies: Name | None) -> bool:
        """Gives a loop's copies to the producers, where they are boxes that depend only on variables of the
        grid and of loops."""
        small = [x for x in ahead if not self.copied(x, COPY_BYTES * self.threads)]
        boxed = [x for x in ahead if x not in small or x.name in self.boxes.loads]
        if self.closed or not self._shareable(s.body, boxed):
            return False
        if len(boxed) < len(ahead):  # consumers load the others, so they wait in each iteration
            ahead, flies = boxed, None
        else:
            flies = self.flies(s, ahead, joint=True)
        ring = self._ring(s.name.stem, s.body, ahead, s.stages)
        self.fills.append(self._as_loop(s, self._filled(ring, s.body, ahead)))
        self.around[-1].filled = True
        self._consume(s, ring, ahead, flies)
        return True

    def _shareable(self, body: Iterable[of.Statement], ahead: list[of.Load]) -> bool:
        """Whether all loads are boxes that depend only on variables of the grid and of loops."""
        known = {*self.grid, Name("tile")}
        for one in self.around:
            if not all(_known(e, known) for e in (one.loop.low, one.loop.high)):
                return False
            known |= one.own
        return all(map(self.fits_box, ahead)) and all(
            _known(e, known) for e in self._read(tuple(body), ahead)
        )

    def _read(self, body: tuple[of.Statement, ...], ahead: list[of.Load]) -> Iterator[Expr]:
        """The expressions on which copies depend."""
        indices = {i for x in ahead for i in self.facts.indices(x.name)}
        moving = {x.name.stem for x in body if isinstance(x, of.Positions)}
        headers = [h for i in indices - moving for h in self.headers.get(i, ())]
        for x in (*headers, *body):
            match x:
                case of.StepOrigin(_, step, within, count):
                    yield from (e for e in (step, within, count) if e is not None)
                case of.Assign(name, value) if name.sort == "origin":
                    yield value
                case of.Positions(_, origin) if origin is not None:
                    yield origin
                case of.Bounds(_, _, end):
                    yield end
        for x in ahead:
            yield from (x.place, *self.boxes.loads[x.name].at)

    def _apart(self, body: Iterable[of.Statement]) -> set[Name]:
        """The variables that differ between the blocks of a cluster."""
        found = {Name("origin", self.launch.cluster[0].stem)} if self.launch.cluster else set()
        for x in (*(x for one in self.around for x in one.loop.body), *body):
            if isinstance(x, of.Assign | of.StepOrigin):
                if any(n in found for e in of.expressions(x) for n in origins(e)):
                    found.add(x.name)
        return found

    def _in_cluster(self, warps: Expr) -> Expr:
        """The number of arrivals of some warps of each block of a cluster. Blocks form clusters where the
        grid has whole ones and the TMA copies; otherwise each block counts alone."""
        assert self.launch.cluster is not None, "else nothing is shared"
        name, size, tiles = self.launch.cluster
        whole = to.All((of.Even(tiles, Number(size)), BOXES))
        self.constants[name] = Apply("add", (Number(1), Apply("mul", (Number(size - 1), whole))))
        return Apply("mul", (warps, name))

    def meets(self) -> tuple[to.Statement, ...]:
        """The cluster barriers: before the first block accesses another block's shared memory, and until no
        block does any more."""
        shared = self.launch.cluster is not None and self.launch.cluster[0] in self.constants
        return (to.ClusterBarrier(),) if shared else ()

    def _ring(
        self, stem: str, body: Iterable[of.Statement], ahead: list[of.Load], stages: int
    ) -> Ring:
        """A circular buffer of stages for some loads, with its signals. Loops that load the same tensor fill
        the same tile, so they share one circular buffer: no stage is overwritten before it was read."""
        divided = tuple(self.divided(x, self._apart(body)) for x in ahead)
        self.share(ahead)
        tiles = tuple(self.boxed(x, stages, d) for x, d in zip(ahead, divided, strict=True))
        self.depths |= {x.name: stages for x in ahead}
        if others := [one for one in self.own_rings if set(one.tiles) & set(tiles)]:
            first = others[0]
            return self._went_on(others, Ring(first.stem, first.number, stages, tiles, divided))
        self.rings += 1
        ring = Ring(stem, self.rings, stages, tiles, divided)
        self.own_rings.append(ring)
        copying = of.Compute("where", (BOXES, Number(1), Number(self.producers)))
        warps: Expr = Number(self.threads >> self.owners.warp_bits)
        if ring.shared:
            warps = self._in_cluster(warps)
        self.signals.append(Signal(ring.full, stages, copying, ring.tiles))
        self.signals.append(Signal(ring.empty, stages, warps, ring.tiles))
        self.first += ring.begun("read", parity=0)
        # The phase before the first one counts as complete: all stages are empty.
        self.fill_first += ring.begun("write", parity=1)
        for s in (*ring.begun("read", 0), *ring.begun("write", 0)):
            self.fragment(s.name, "i32")
        return ring

    def _went_on(self, others: list[Ring], ring: Ring) -> Ring:
        """The circular buffer of earlier loops, which this loop continues. Raises BackendError where it cannot."""
        # A load outside of loops releases its stage only at the end of the tile: a second one would wait
        # forever.
        if (
            len({one.number for one in others}) > 1
            or others[0].loop != ring.loop
            or ring.stages == 1
        ):
            both = next(t.stem for one in others for t in ring.tiles if t in one.tiles)
            what = (
                f"`{both}` is copied in bulk in several places, which cannot share a ring of stages"
            )
            raise BackendError(
                "emit", f"{what}: give their loops as many stages, or copy it by threads"
            )
        for n, one in enumerate(self.signals):
            if one.name in (ring.full, ring.empty):
                tiles = tuple(dict.fromkeys((*one.tiles, *ring.tiles)))
                self.signals[n] = replace(one, tiles=tiles)
        self.own_rings.append(ring)
        return ring

    # -- roles --------------------------------------------------------------------------------

    def _filled(
        self, ring: Ring, body: tuple[of.Statement, ...], ahead: list[of.Load]
    ) -> tuple[to.Statement, ...]:
        """The statements that fill one stage."""
        stage = ring.stage("write")
        self.copying_bits, before = self.producers.bit_length() - 1, self.copying_bits
        found = self.copies_of(*self.by_threads(body, ahead), stage, ring.stages)
        self.copying_bits = before
        origins = [x for x in found if isinstance(x, to.Each) and x.name.sort in ("origin", "step")]
        copies = [x for x in found if x not in origins]
        every = zip(ahead, ring.tiles, ring.divided, strict=True)
        alone = [one for one in every if self.whole(one[0])]
        boxes = tuple(self._box_copy(*one, stage, ring.full) for one in alone)
        brought = tuple(tile for _, tile, _ in alone)
        one = of.Check(to.Thread(), equal=Number(0))
        by_one = to.Guard(one, (to.Arrive(ring.full, stage, expects=brought), *boxes))
        by_all = (*copies, to.Commit(), to.Wait(0), to.Fence(), to.Arrive(ring.full, stage))
        return (
            to.Await(ring.empty, stage, ring.parity("write")),
            *origins,
            to.Guard(BOXES, (by_one,), by_all),
            *ring.next("write"),
        )

    def _box_copy(
        self, x: of.Load, tile: Name, divided: str, stage: Expr, full: Name
    ) -> to.BoxCopy:
        """The copy of a load's box, or of this block's part of it."""
        box, part = self.boxes.loads[x.name], None
        at = list(box.at)
        if divided:
            assert self.launch.cluster is not None, "else nothing is divided"
            own = Apply("mod", (Name("tile"), self.launch.cluster[0]))
            place, part = box.axes.index(divided), self.scalar(own)
            step = self.boxes.descriptors[box.descriptor].steps[place]
            shift = scaled(times(own, self.part_of(self.width(divided))), step)
            at[place] = Apply("add", (at[place], shift))
        begins = tuple(map(self.scalar, at))
        return to.BoxCopy(tile, map_of(x.name), begins, stage, full, part, x.cache)

    def _alone(self, s: of.Load) -> None:
        """A load outside of loops, whose tile is filled once for each tile of the grid."""
        ring = self._ring(s.name.stem, (), [s], 1)
        self.fills += self._filled(ring, (s,), [s])
        self.put(to.Await(ring.full, ring.stage("read"), ring.parity("read")))
        # Whether threads load from it is not known yet; a superfluous fence costs little.
        self.last += [to.Fence(), ring.freed(ring.stage("read")), *ring.next("read")]

    def _consume(self, s: of.Loop, ring: Ring, ahead: list[of.Load], flies: Name | None) -> None:
        """The consumers' side of a loop."""
        stage = ring.stage("read")
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        some = s.certain or low == Number(0) and _positive(high)  # it certainly has an iteration
        self.stages |= {x.name: stage for x in ahead}
        consumed = self.block(s.body)
        # A load to registers may be in flight when its thread arrives, since ptxas does not wait for it, and
        # the TMA could overwrite data that was not read yet.
        loads = any(
            isinstance(x, to.SharedLoad) and _in(x.tile, ring.tiles)
            for x in to.statements(consumed)
        )
        fence: to.Block = (to.Fence(),) if loads else ()
        free: to.Block = (*fence, ring.freed(stage))
        over = (*fence, ring.freed(ring.before("read")))
        multiplies = [x for x in consumed if isinstance(x, to.WarpgroupMultiply)]
        if late := next((x.to for x in multiplies if x.to in self.later), None):
            self.later.remove(late)
            parts = overlap(consumed, late, self.fragments, ring.tiles)
            if late in self.sooner:
                self.sooner.remove(late)
                made = parts_ahead(parts, self.fragments, self.temporary)
                self._sooner(s, ring, made, some, over)
            else:
                self._overlapped(s, ring, parts, some, over)
            return
        if any(x.a in self.fragments for x in multiplies):  # the next load would overwrite it
            flies = None
        regroups = [x for x in consumed if isinstance(x, to.Regroup)] if flies else []
        if flies:  # the matmul of the iteration before is complete, so its stage is free
            # Registers are regrouped once, before and after the loop.
            consumed = in_flight(tuple(x for x in consumed if x not in regroups))
            flies = next(x.to for x in consumed if isinstance(x, to.WarpgroupMultiply))
            free = (to.Guard(of.Compute("gt", (to.Element(name), low)), over),)
        elif at := self._late(consumed, ring, some):
            first, last = at
            flies = consumed[last].to  # type: ignore[attr-defined]
            begun = to.Guard(of.Compute("gt", (to.Element(name), low)), over)
            before = (*consumed[:first], to.WarpgroupWait(flies), begun, *consumed[first:last])
            consumed = (*before, replace(consumed[last], pending=1), *consumed[last + 1 :])  # type: ignore[call-arg]
            free = ()
        full = to.Await(ring.full, stage, ring.parity("read"))
        body = (full, *consumed, *free, *ring.next("read"))
        self.found += (x for x in regroups if x.name == flies)
        self.put(to.Loop(name, low, high, s.tile, body, certain=some))
        if flies:
            self.put(to.WarpgroupWait(flies))
            self.found += over if some else (to.Guard(of.Compute("gt", (high, low)), over),)
        self.found += (x for x in regroups if x.source == flies)

    def _overlapped(
        self, s: of.Loop, ring: Ring, parts: Overlap, certain: bool, over: to.Block
    ) -> None:
        """The consumers' side of a loop whose last matmul runs one iteration later. over: statements that
        release the stage of the iteration before."""
        if ring.stages < 2:
            raise BackendError("emit", "a matmul one iteration later needs two stages in flight")
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        full = to.Await(ring.full, ring.stage("read"), ring.parity("read"))
        before = ring.before("read")
        second = above(low, s.tile)
        once = (full, *parts.once(), *ring.next("read"))
        again = (full, *parts.again(before, over), *ring.next("read"))
        made = (
            to.Loop(name, low, second, s.tile, once, certain=True),
            to.Loop(name, second, high, s.tile, again),
            replace(parts.later, b_stage=before),
            *over,
        )
        for x in made if certain else (to.Guard(of.Compute("gt", (high, low)), made),):
            self.put(x)

    def _sooner(self, s: of.Loop, ring: Ring, parts: Ahead, certain: bool, over: to.Block) -> None:
        """The consumers' side of a loop whose first matmul runs one iteration ahead. over: as above."""
        if ring.stages < AHEAD_STAGES:
            what = f"a matmul one iteration ahead needs {AHEAD_STAGES} stages"
            raise BackendError("emit", f"{what}; there are {ring.stages}")
        low, high, name = self.scalar(s.low), self.scalar(s.high), self.variable(s.name)
        stage, second = ring.stage("read"), above(low, s.tile)
        past = Apply("add", (to.Element(name), Number(s.tile)))
        made, after, parity = ring.after("read", of.Compute("ge", (past, high)))
        for one in made:
            self.fragment(one.name, "i32")
        await_next = (*made, to.Await(ring.full, after, parity))
        full = to.Await(ring.full, stage, ring.parity("read"))
        once = (full, *parts.once(stage, await_next, after), *ring.next("read"))
        before = ring.before("read")
        again = (*parts.again(stage, await_next, after, before, over), *ring.next("read"))
        done = (
            *parts.begin,
            to.Loop(name, low, second, s.tile, once, certain=True),
            to.Loop(name, second, high, s.tile, again),
            replace(parts.later, b_stage=before),
            *over,
            *parts.end,
        )
        for x in done if certain else (to.Guard(of.Compute("gt", (high, low)), done),):
            self.put(x)

    def _late(
        self, block: tuple[to.Statement, ...], ring: Ring, certain: bool
    ) -> tuple[int, int] | None:
        """The positions of the statement that writes the register operand of a loop's matmul, and of the
        matmul, if it may be in flight until that operand is written again: nothing else accesses its result,
        and the other operand is in the circular buffer. None: there is no such matmul."""
        every = list(to.statements(block))
        found = [n for n, s in enumerate(block) if isinstance(s, to.WarpgroupMultiply)]
        if (
            not certain
            or len(found) != 1
            or sum(isinstance(s, to.WarpgroupMultiply) for s in every) > 1
        ):
            return None
        multiply = block[found[0]]
        assert isinstance(multiply, to.WarpgroupMultiply)
        others = [s for s in every if s is not multiply]
        touched = reads(others) | {getattr(s, "name", None) for s in others}
        written = [n for n, s in enumerate(block) if getattr(s, "name", None) == multiply.a]
        alone = multiply.a in self.fragments and len(written) == 1 and written[0] < found[0]
        alone = alone and multiply.a not in reads(others)
        if not alone or multiply.to in touched or multiply.b not in ring.tiles:
            return None
        return written[0], found[0]


class _Loop:
    """A loop around a statement."""

    def __init__(self, loop: of.Loop):
        self.loop = loop
        self.filled = False  # whether its copies were given to producers
        self.own = {loop.name}  # the variables that it defines
        for x in loop.body:
            if isinstance(x, of.StepOrigin) or isinstance(x, of.Assign) and x.name.sort == "origin":
                self.own.add(x.name)


def _in(tile: Name, tiles: Iterable[Name]) -> bool:
    """Whether a tile, or a view of the same memory, is among these."""
    return any((tile.stem, tile.copy) == (one.stem, one.copy) for one in tiles)


def _positive(count: Expr) -> bool:
    """Whether a number is positive at all positive sizes."""
    match count:
        case Number(value):
            return value > 0
        case of.Tiles(size):
            return _positive(size)
        case Apply("mul", args):
            return all(map(_positive, args))
    return isinstance(count, Size)


def _known(expr: Expr, names: set[Name]) -> bool:
    """Whether an expression has no variables except these, positions and constants."""
    own = ("origin", "low", "high", "step", "tiles", *FRAGMENTS)
    return all(n in names or n.sort not in own for n in origins(expr))
