"""The work of a thread block: how long it keeps each engine of a multiprocessor busy, and its latencies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, log2, prod
from typing import Any, cast

from backends.gpu.blocks import sides
from backends.gpu.model.extents import Extents
from backends.gpu.model.instructions import instructions
from backends.gpu.model.transactions import VECTOR_BYTES, Move, move, untouched
from backends.gpu.transposed import right_operand, transposed_products
from ir.functions import POINTWISE
from ir.machine import Machine
from ir.nest.bulk import later_taps
from ir.nest.footprint import tables
from ir.nest.nest import (
    Dot,
    Launch,
    Load,
    Loop,
    Map,
    Reduction,
    Scan,
    Search,
    Statement,
    Store,
    Take,
    Tile,
)
from ir.nest.steps import Step, Temporary, steps, tile_axes
from ir.sizes import value as number
from ir.spec import DTYPES, Index, Number

ADDRESS = 3  # instructions per load or store of a thread, for its address and mask
REDUCTION_CYCLES = 120  # from the last element of a reduction to its result
SCAN_CYCLES = 240
SCAN = 8  # instructions per element of a scan
DOT_CYCLES = 60  # from the last operand of a matmul to its result
LEAST_ALONG = 4  # least threads per reduction result
# Instructions issued per cycle in which an engine is busy.
ISSUED = {"vector": 1.0, "load": 1.0, "shared": 1 / 4, "matrix": 1 / 16}
OUTSIDE = 80  # instructions of a warp outside of all statements: origins, ranges
MOST_UNROLLED = 4  # iterations of a constant-size loop that the compiler unrolls
COPIED = 4  # least bytes that a thread copies to shared memory asynchronously
TRANSPOSED = 2.5  # elements per cycle that are transposed into shared memory
# Barriers around an operand that threads write to shared memory: before and after
FENCES = 2
SHUFFLE = 2  # instructions of each step of a warp reduction


@dataclass(slots=True)
class Work:
    """The work of one thread block."""

    moves: list[Move] = field(default_factory=list)
    # Busy time of each engine of a multiprocessor that runs this thread block alone
    seconds: dict[str, float] = field(default_factory=dict)
    waits: float = 0.0  # seconds of load latency that pipelining does not hide
    alone: float = 0.0  # seconds to issue each statement of the compiled code once
    looped: float = 0.0  # seconds of both in loops
    text: float = 0.0  # seconds to issue each statement of the compiled text once
    run: float = 0.0  # seconds to issue each statement as often as it runs
    # Words per thread of matmul operands that threads write to shared memory, and barriers for them, in the compiled
    # code
    handed: float = 0.0
    fences: float = 0.0
    ahead: float = 0.0  # of these words, those of further unrolled iterations

    @property
    def in_turn(self) -> float:
        """The share of its own time for which a tile occupies the multiprocessor with ping-pong: the two groups
        alternate in the loops, and overlap outside of them."""
        whole = self.waits + self.alone
        return max(self.looped / whole, 1 / 2) if whole else 1.0

    @property
    def repeats(self) -> float:
        """Average executions per instruction of the compiled code."""
        return self.run / self.text if self.text else 1.0


def work(
    launch: Launch,
    ext: Extents,
    machine: Machine,
    table: Mapping[str, Any],
    warps: int,
    stages: int,
    free: int,
    known: list[Counted] | None = None,
) -> Work:
    """The work of a thread block of `warps` warps. stages: iterations of a loop in flight at once. free: bytes of a
    thread's registers for loads in flight. known: the counts of an earlier call that differs only in `free`; an
    empty list receives them."""
    counter = known[0] if known else Counted(launch, ext, machine, table, warps, stages)
    if known is not None:
        known[:] = [counter]
    counter.begin(free)
    for block in (launch.once, launch.body):
        fetch, after, moving, alone = counter.block(block, ())
        counter.work.waits += fetch + after
        counter.work.alone += moving + alone
    return counter.work


class Counted:
    """Visits the statements. Times are of one execution, sums of a thread block."""

    def __init__(
        self,
        launch: Launch,
        ext: Extents,
        machine: Machine,
        table: Mapping[str, Any],
        warps: int,
        stages: int,
    ):
        # For each statement in program order: seconds that an execution is busy, seconds of latency
        # for what follows, and the last move.
        self.statements: list[tuple[float, float, Move | None]] = []
        self.again: Iterator[tuple[float, float, Move | None]] | None = None
        self.last: Move | None = None
        self.launch, self.ext, self.machine, self.table = launch, ext, machine, table
        self.warps, self.stages, self.free = warps, stages, VECTOR_BYTES
        self.threads = warps * table["warp"]
        self.values = {v.name: v for v in launch.values}
        self.tables = tables(launch) | later_taps(launch)  # values without a load of their own
        products = [s for s in launch.statements() if isinstance(s, Dot)]
        self.transposed_products = transposed_products(launch, ext.blocks)
        self.maps = [s for s in launch.statements() if isinstance(s, Map)]
        self.taken = {t.value for s in products for t in (s.a, s.b, *s.scales)}  # matmul operands
        outside = OUTSIDE * warps / table["partitions"] / table["clock_hz"]
        self.work = Work(text=outside, run=outside)
        self.pipelined, self.together = False, 1.0  # iterations whose loads are in flight at once
        self.backwards = False  # whether the innermost loop runs in reverse
        # For each loaded or mapped value, the loops in which it varies
        self.moves: dict[str, frozenset[str]] = {}
        self.loads: dict[str, list[Load]] = {}  # by tensor, since the innermost loop began or ended
        self.copies: dict[str, float] = {}  # unrolled copies of each loop body in the code
        self.ends: dict[str, str] = {}  # the fastest index in memory of each value
        matrix = machine.units.get("matrix")
        self.from_shared = matrix is not None and matrix.reads == "shared"
        self.cycle = 1 / table["clock_hz"]
        self.share = min(1.0, warps / table["partitions"])

    def begin(self, free: int) -> None:
        """Prepares a visit of the statements. A later visit differs only in how often loads wait, as nothing else depends
        on the registers for loads in flight."""
        self.free = max(free, VECTOR_BYTES)
        if self.statements:
            self.again = iter(self.statements)
            self.work = replace(self.work, waits=0.0, alone=0.0, looped=0.0)

    def block(
        self, block: tuple[Statement, ...], around: tuple[tuple[str, float], ...]
    ) -> tuple[float, float, float, float]:
        """Seconds of one execution: latency of loads, other latencies, moving, computing."""
        fetch = after = moving = alone = 0.0
        later = beside = 0.0  # of matmuls one iteration later or ahead, and of what hides them
        ahead = any(isinstance(s, Dot) and s.ahead for s in block)
        asked, self.loads = False, {}
        for s in block:
            if isinstance(s, Loop):
                waits, busy = self._loop(s, around)
                self.loads = {}
                self.work.looped += waits + busy if not around else 0.0
                after, alone, asked = after + waits, alone + busy, False
                continue
            busy, wait = self._statement(s, around)
            if isinstance(s, Load) and s.value not in self.tables:
                behind = any(one.rows is not None for one in s.region)
                again = self._batches() - (1 if asked and not behind else 0)
                fetch += again * self._latency("memory")
                asked = True
            elif not isinstance(s, Load):
                asked = False
            after += wait if not (ahead and isinstance(s, Dot)) else 0.0
            if isinstance(s, Dot) and (s.overlaps or ahead):
                later += busy
                continue
            if isinstance(s, Dot) and self.again is None:
                self._hand_over(s, around)
            beside += 0.0 if isinstance(s, Load | Dot) else busy
            moving, alone = (
                (moving + busy, alone) if isinstance(s, Load) else (moving, alone + busy)
            )
        return fetch, after, moving, alone + max(0.0, later - beside)

    def _loop(self, s: Loop, around: tuple[tuple[str, float], ...]) -> tuple[float, float]:
        """Seconds of all iterations: latency, and busy. With stages, loads overlap the rest."""
        iterations = self.ext.iterations(s)
        inner = not any(isinstance(x, Loop) for x in s.body)
        literal = isinstance(s.low.size, Number) and isinstance(s.high.size, Number)
        pipelined = inner and self.stages > 1 and any(isinstance(x, Load) for x in s.body)
        few = iterations <= MOST_UNROLLED and sum(isinstance(x, Dot) for x in s.body) < 2
        unrolled = inner and literal and few and not pipelined
        if unrolled:
            self.copies[s.index] = iterations
        self.pipelined, self.together = pipelined, iterations if unrolled else 1.0
        outside, self.backwards = self.backwards, s.backwards
        fetch, after, moving, alone = self.block(s.body, (*around, (s.index, iterations)))
        self.pipelined, self.together, self.backwards = False, 1.0, outside
        if unrolled:
            return fetch + iterations * after, iterations * (moving + alone)
        if not pipelined:
            return iterations * (fetch + after), iterations * (moving + alone)
        busy = max(moving, alone)
        exposed = max(0.0, (fetch + after + busy) / self.stages - after - busy)
        return fetch + iterations * (exposed + after), iterations * busy

    def _batches(self) -> float:
        """How many times the last load waits, as the registers of its threads hold only part of what is in flight."""
        if self.pipelined:  # data in flight are in shared memory
            return 1.0
        last = cast(Move, self.last)
        return max(1.0, self.together * last.bytes / self.threads / self.free)

    def _statement(
        self, s: Statement, around: tuple[tuple[str, float], ...]
    ) -> tuple[float, float]:
        """Seconds that an execution is busy, and seconds of latency for what follows."""
        if self.again is not None:
            busy, wait, self.last = next(self.again)
            return busy, wait
        seconds, wait = self._counted(s, around)
        busy = self._busy(seconds, around)
        self.last = self.work.moves[-1] if self.work.moves else None
        self.statements.append((busy, wait, self.last))
        return busy, wait

    def _counted(
        self, s: Statement, around: tuple[tuple[str, float], ...]
    ) -> tuple[dict[str, float], float]:
        match s:
            case Load() | Store():
                if isinstance(s, Load):
                    self.moves[s.value] = frozenset(index for index, _ in around)
                if isinstance(s, Load) and s.region and s.region[-1].axis:
                    self.ends[s.value] = s.region[-1].axis
                return ({}, 0.0) if s.value in self.tables else (self._moved(s, around), 0.0)
            case Dot():
                seconds = self._dot(s)
                behind = 0.0 if s.overlaps else DOT_CYCLES * self.cycle
                return seconds, behind + self._held_up(s, seconds["matrix"])
            case Map():
                of = (n.value for n in s.expression.walk() if isinstance(n, Tile))
                for known in (n for n in of if n in self.ends):
                    self.ends[s.value] = self.ends[known]
                return self._map(s, around), 0.0
            case Reduction():
                return self._reduction(s, REDUCTION_CYCLES, 1)
            case Scan():
                return self._reduction(s, SCAN_CYCLES, SCAN)
            case Search():
                depth = ceil(log2(number(s.count, self.ext.sizes) + 1))
                return self._gathered(s.source, depth), depth * self._latency("cache")
            case Take():
                return self._gathered(s.at, 1), self._latency("cache")
            case _:
                return {}, 0.0

    def _moved(self, s: Load | Store, around: tuple[tuple[str, float], ...]) -> dict[str, float]:
        found = move(s, self.ext, self.table["sector_bytes"], self.threads, around)
        requests, fresh = found.requests, found.fresh
        rows = self.values[s.value].rows if isinstance(s, Load) else None
        if rows is not None and rows.direct:  # each thread copies that many bytes at once
            requests = max(requests, found.bytes / self.table["lds_copy_bytes"])
        if isinstance(s, Load) and not (s.bulk or found.rows or self._copied(s)):
            earlier = self.loads.setdefault(s.tensor, [])
            fresh *= untouched(s, earlier, self.ext)
            earlier.append(s)
        if (requests, fresh, self.backwards) != (found.requests, found.fresh, False):
            found = replace(found, requests=requests, fresh=fresh, backwards=self.backwards)
        self.work.moves.append(found)
        cycles = max(
            found.requests / self.table[self._asked_at(s, found)],
            found.sectors / self.table["shared_bytes_per_cycle"],
        )
        return {
            "load": cycles * self.cycle,
            "fabric": found.sectors
            * found.asked
            / max(found.times, 1e-9)
            / self.table["cache_bytes_per_cycle"]
            * self.cycle,
            "vector": ADDRESS * found.requests / self._rate("vector", "i32"),
            "shared": self._passes(s)
            * found.bytes
            / self.table["shared_bytes_per_cycle"]
            * self.cycle
            if self._copied(s)
            else 0.0,
        }

    def _asked_at(self, s: Load | Store, found: Move) -> str:
        """The table's field for threads served per cycle. Fewer threads are served where each copies a few bytes to
        shared memory; copies of less than four bytes do not exist."""
        each = found.bytes / max(found.requests, 1.0)
        narrow = COPIED <= each < VECTOR_BYTES
        return "copy_threads_per_cycle" if narrow and self._copied(s) else "load_threads_per_cycle"

    def _copied(self, s: Load | Store) -> bool:
        """Whether a load is prefetched to shared memory."""
        return self.pipelined and isinstance(s, Load) and self.table["copies_async"]

    def _passes(self, s: Load | Store) -> int:
        """Shared memory passes of the bytes of a copy, except for a matmul that reads them there."""
        return 1 if self.from_shared and s.value in self.taken else 2

    def _gathered(self, tile: Tile, depth: int) -> dict[str, float]:
        """Loads of `depth` dependent table entries in global memory."""
        threads = depth * max(self._elements(tile_axes(tile, self.values)), 1)
        sectors = threads * self.table["sector_bytes"]
        cycles = max(
            threads / self.table["load_threads_per_cycle"],
            sectors / self.table["shared_bytes_per_cycle"],
        )
        return {
            "load": cycles * self.cycle,
            "vector": (ADDRESS + 3) * threads / self._rate("vector", "i32"),
        }

    def _dot(self, s: Dot) -> dict[str, float]:
        rows, columns, depth = (
            prod(self.ext.width(i) for i in side) for side in sides(s, self.values)
        )
        right, both = self._right(s), tile_axes(s.b, self.values)
        batch = prod(
            self.ext.width(i)
            for i in self.values[s.value].names
            if i in both and i in tile_axes(s.a, self.values)
        )
        a, b = (self.values[t.value].dtype for t in (s.a, s.b))
        if right is not s.b:
            rows, columns, a, b = columns, rows, b, a
        flops = 2 * batch * rows * columns * depth
        fast = a in self.table["matrix_dtypes"]
        full = rows >= self.table["matrix_rows"] and self.warps >= self.table["matrix_warps"]
        # A smaller instruction, or one that fewer warps execute, does not reach the full rate.
        full = full and (s.instruction is None or s.instruction[0] >= self.table["matrix_rows"])
        full = full and (s.warps is None or s.warps[0] % self.table["matrix_warps"] == 0)
        part = 1.0 if full else self.table["matrix_share_below"]
        if full and self.from_shared:  # each warpgroup needs rows of its own
            groups = self.warps / self.table["matrix_warps"]
            part = min(1.0, rows / self.table["matrix_rows"] / groups)
        part = part if fast else self.table["thread_product_share"]
        # How often operands A and B are read from shared memory.
        down = rows // self.table["matrix_rows"] if full else min(self.warps, max(1, rows // 16))
        across = 1 if full else max(1, self.warps // down)
        read = batch * depth * (rows * across * DTYPES[a] + columns * down * DTYPES[b])
        # Compilers that keep operands in registers read them in their own order for a smaller instruction.
        there = full or not self.ext.blocks.rules.flat_sums
        transposed = self._transposed(s, right, batch * columns * depth) if fast and there else 0.0
        if self.from_shared and not self.values[right.value].loaded:
            # Layout conversion through shared memory, both ways
            read += 2 * batch * depth * columns * DTYPES[b]
        return {
            "matrix": flops / (self._rate("matrix", a) * part),
            "shared": (read / self.table["shared_bytes_per_cycle"] + transposed) * self.cycle,
        }

    def _hand_over(self, s: Dot, around: tuple[tuple[str, float], ...]) -> None:
        """Counts loaded operands that a thread holds and hands over to others through shared memory."""
        copies = prod(self.copies.get(index, 1.0) for index, _ in around)
        for tile in {s.a, s.b}:
            if self._is_held(tile.value):
                words = self._elements(self._axes(tile)) * DTYPES[self.values[tile.value].dtype] / 4
                self.work.handed += copies * words / self.threads
                self.work.ahead += (copies - 1) * words / self.threads
                self.work.fences += copies * FENCES

    def _is_held(self, value: str) -> bool:
        """Whether a value was loaded into registers, or computed only from loaded values."""
        if self.values[value].loaded:
            return not self.pipelined and value in self.taken
        found = [m for m in self.maps if m.value == value]
        read = [n.value for m in found for n in m.expression.walk() if isinstance(n, Tile)]
        return bool(read) and all(self.values[n].loaded for n in read)

    def _held_up(self, s: Dot, seconds: float) -> float:
        """Seconds for which a matmul blocks what follows: threads may overwrite its operand B in shared memory only
        after it."""
        made = self.from_shared and not self.values[self._right(s).value].loaded
        return seconds if made else 0.0

    def _right(self, s: Dot) -> Tile:
        """Operand B of the matrix unit, which it reads from shared memory."""
        if not self.ext.blocks.rules.flat_sums:
            return s.b
        right = right_operand(s, self.values, self.ext.blocks)
        if s not in self.transposed_products:
            return right
        return s.a if right is s.b else s.b

    def _transposed(self, s: Dot, right: Tile, elements: float) -> float:
        """Cycles to transpose operand B into shared memory so that K is contiguous, which the unit requires for 4-byte
        dtypes."""
        wide = self.from_shared and DTYPES[self.values[right.value].dtype] >= 4
        if not wide or self.ends.get(right.value, s.over[-1]) in s.over:
            return 0.0
        return elements / TRANSPOSED

    def _map(self, s: Map, around: tuple[tuple[str, float], ...]) -> dict[str, float]:
        vector = special = 0.0
        own: dict[str, frozenset[str]] = {}
        for step in steps(s, self.values):
            to = step.to.axes if isinstance(step.to, Temporary) else self._axes(step.to)
            moves = self._moves(step, own, around)
            if isinstance(step.to, Temporary):
                own[step.to.name] = moves
            else:
                self.moves[s.value] = moves
            count = max(self._elements(to), self.threads) / self._kept(moves, around)
            vector += count * instructions(step)
            known = POINTWISE.get(step.function)
            special += count if known and known.unit == "special" else 0
        return {
            "vector": vector / self._rate("vector", "i32"),
            "special": special / self._rate("special", "f32"),
        }

    def _moves(
        self, step: Step, own: Mapping[str, frozenset[str]], around: tuple[tuple[str, float], ...]
    ) -> frozenset[str]:
        """The enclosing loops in which the result of a step varies. own: the same for other steps of its map."""
        every = frozenset(index for index, _ in around)
        found: set[str] = set()
        for one in (n for arg in step.args for n in arg.walk()):
            if isinstance(one, Index):
                found |= every & {one.name}
            elif isinstance(one, Temporary):
                found |= own.get(one.name, every)
            elif isinstance(one, Tile):
                found |= self.moves.get(one.value, every)
        return frozenset(found)

    def _kept(self, moves: Collection[str], around: tuple[tuple[str, float], ...]) -> float:
        """Iterations of the innermost loops out of which the compiler hoists a loop-invariant computation."""
        kept = 1.0
        for index, iterations in reversed(around):
            if index in moves:
                break
            kept *= max(1.0, iterations)
        return kept

    def _reduction(
        self, s: Reduction | Scan, cycles: int, each: int
    ) -> tuple[dict[str, float], float]:
        source = tile_axes(s.source, self.values)
        count = max(self._elements(source), self.threads)
        kept = max(1, self._elements(self.values[s.value].names))
        if (
            isinstance(s, Reduction)
            and self._elements(tuple(i for i in source if i in s.over)) == 1
        ):
            return {"vector": count / self._rate("vector", "i32")}, 0.0
        # Threads that share one result: more where there are fewer results than threads.
        along = min(self.table["warp"], max(LEAST_ALONG, self.threads / kept))
        shuffles = SHUFFLE * log2(along) * min(kept * along, count)
        shared = 4 * min(kept, count) * self.warps / self.table["shared_bytes_per_cycle"]
        return {
            "vector": (each * count + shuffles) / self._rate("vector", "i32"),
            "shared": shared * self.cycle,
        }, cycles * self.cycle

    def _busy(self, seconds: dict[str, float], around: tuple[tuple[str, float], ...]) -> float:
        """Adds one execution to the sums of the thread block; returns how long its own warps take."""
        times = text = 1.0
        for index, iterations in around:
            times *= iterations
            text *= self.copies.get(index, 1.0)
        every, own = 0.0, self.work.seconds
        for engine, share in ISSUED.items():
            every += share * seconds.get(engine, 0.0)
        self.work.run += times * every
        self.work.text += every * text
        for engine, each in seconds.items():
            own[engine] = own.get(engine, 0.0) + times * each
        return max(seconds.values(), default=0.0) / self.share

    def _rate(self, unit: str, dtype: str) -> float:
        """Operations per second of one multiprocessor; i32 counts single instructions of the threads."""
        unit = unit if unit in self.machine.units else "vector"
        return self.machine.peak(unit, dtype) / self.machine.parallel

    def _latency(self, space: str) -> float:
        return 1e-9 * self.table[f"{space}_latency_ns"]

    def _axes(self, tile: Tile) -> tuple[str, ...]:
        return tile_axes(tile, self.values)

    def _elements(self, names: tuple[str, ...]) -> int:
        """Elements over axes, padded; an axis that no index names has its value's extent."""
        known = self.ext.blocks.blocks
        return self.ext.elements(tuple(n for n in names if n in known))
