"""Signals: mbarriers in shared memory at which threads and bytes arrive, and TMA copies of boxes.

The roles of a block run one at a time. One runs until it waits for an incomplete phase; then
another one runs. It is a deadlock where all of them wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from backends.gpu.threads.interpreter import faults
from backends.gpu.threads.interpreter.expressions import Code, Compiler, Run
from backends.gpu.threads.interpreter.places import Tensor
from backends.gpu.threads.interpreter.roles import Turns
from backends.gpu.threads.interpreter.shared import Access, SharedMemory, Tile
from backends.gpu.threads.interpreter.state import Block
from backends.gpu.threads.signals import Signal, TensorMap
from backends.gpu.threads.thread import Arrive, Await, BoxCopy, BoxStore
from backends.gpu.tile import Name
from ir.reference.rounding import round_to
from ir.spec import DTYPES


@dataclass(slots=True)
class Stage:
    """One mbarrier."""

    arrivals: int  # of threads, that complete a phase
    left: int = 0  # missing in the current phase
    expected: int = 0  # bytes that have not arrived; negative where a peer's bytes came first
    phase: int = 0  # completed phases
    waited: int = 0  # phases that were waited for
    by: int | None = None  # the first thread of the role that waited last
    # What the arriving threads know to be complete, as in `Signals.known`: of this phase, and of
    # earlier ones.
    telling: dict[int, int] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)
    touched: int = -1  # the last phase in which another block of the cluster took part
    copied: list[tuple[Tile, Access, np.ndarray]] = field(default_factory=list)
    fenced: bool = True  # whether writes of threads are visible to the async proxy
    # The memories of blocks whose threads arrived: in this phase, and in completed ones.
    arriving: list[SharedMemory] = field(default_factory=list)
    arrived: list[SharedMemory] = field(default_factory=list)

    def settle(self, memory: SharedMemory) -> None:
        """Completes the phase, if all have arrived: its copies have landed."""
        if self.left or self.expected:
            return
        for tile, access, values in self.copied:
            memory.land(tile, access, values)
        self.arrived += self.arriving
        _learn(self.told, self.telling)
        self.copied, self.arriving, self.left = [], [], self.arrivals
        self.phase += 1


@dataclass(slots=True)
class Signals:
    """The signals of one block, and those of the other blocks of its cluster."""

    memory: SharedMemory
    turns: Turns
    cluster: list[Signals]  # in order, including this one
    roles: int = 0  # that have not ended
    met: int = 0  # completed cluster barriers
    waiting: int = 0  # roles of the block that wait at a cluster barrier
    stages: dict[Name, list[Stage]] = field(default_factory=dict)
    guarded: dict[Name, tuple[Name, ...]] = field(default_factory=dict)  # tiles of each signal
    # For each role, with ping-pong groups: how many phases of a stage it knows to be complete.
    known: dict[int, dict[int, int]] = field(default_factory=dict)

    def begin(
        self, signals: Sequence[Signal], arrivals: Callable[[Signal], int], roles: int
    ) -> None:
        """Resets the state for a new block: the first phase of all stages."""
        self.roles, self.met, self.waiting, self.known = roles, 0, 0, {}
        for s in signals:
            count = arrivals(s)
            self.stages[s.name] = [Stage(count, count) for _ in range(s.stages)]
            self.guarded[s.name] = s.tiles

    def reached(self, other: Signals, one: Stage, block: Block) -> None:
        """An access to another block's stage. Raises ThreadFault where that block may not have begun, or has exited."""
        if other is self:
            return
        if not self.met or not other.roles:
            what = "may not have begun" if not self.met else "has left"
            raise block.fault(
                faults.CLUSTER, f"a block of the cluster that is reached into {what}", _MEET
            )
        one.touched = one.phase

    def ends(self, block: Block) -> None:
        """A role ends. Raises ThreadFault where others may still access the exiting block."""
        self.roles -= 1
        stages = (one for stages in self.stages.values() for one in stages)
        if not self.roles and any(one.touched >= one.waited for one in stages):
            what = "the block leaves its cluster while others may still reach into it"
            raise block.fault(faults.CLUSTER, what, _MEET)


_MEET = (
    "let all blocks of a cluster meet before the first reaches into another and after the last does"
)


def meet(block: Block, signals: Signals) -> Run:
    """The closure of a cluster barrier."""

    def run() -> None:
        block.require_all("a barrier of a cluster")
        before = signals.met
        signals.waiting += 1
        signals.turns.progress += 1
        if all(one.waiting == one.roles for one in signals.cluster):
            for one in signals.cluster:
                one.met, one.waiting = one.met + 1, 0
                for stage in (s for stages in one.stages.values() for s in stages):
                    stage.touched = -1
        while signals.met == before:
            signals.turns.wait(block)

    return run


def stage_of(block: Block, signals: Signals, name: Name, code: Code) -> tuple[int, Stage]:
    """A stage of a signal. Raises ThreadFault where there is none."""
    number, stages = int(block.alike(code.run())), signals.stages[name]
    if not 0 <= number < len(stages):
        what = f"stage {number} of a signal that has {len(stages)}"
        raise block.fault(faults.OUT_OF_BOUNDS, what, "count stages in a circle")
    return number, stages[number]


def arrive(block: Block, signals: Signals, s: Arrive, stage: Code) -> Run:
    """The closure of an arrival."""
    memory = signals.memory
    size = sum(memory.tiles[n].stage * DTYPES[memory.tiles[n].shared.dtype] for n in s.expects)

    def run() -> None:
        count = block.threads if block.active is None else int(block.active.sum())
        if s.warps:
            block.require_groups("an arrival of warps")
            count //= block.warp
        held = {memory.tiles[n].shared.region for n in signals.guarded[s.signal]}
        if loading := sorted(held & memory.own.loading & memory.flown):
            raise block.fault(
                faults.STAGE_IN_USE,
                f"a stage of `{loading[0]}` is given back while loads from it may not have arrived",
                "put a fence for the asynchronous proxy before the arrival",
            )
        for other in signals.cluster if s.everywhere else (signals,):
            _, one = stage_of(block, other, s.signal, stage)
            signals.reached(other, one, block)
            if count > one.left:
                raise block.fault(
                    faults.SIGNAL,
                    f"{count} threads arrive at a phase that waits for {one.left} more",
                    "count all that arrive, each once in a phase",
                )
            one.left -= count
            one.expected += size
            one.fenced &= memory.own.fenced
            one.arriving.append(memory)
            if memory.apart:
                _learn(one.telling, signals.known.setdefault(block.first, {}))
            one.settle(other.memory)
            signals.turns.progress += 1
        # A thread that waits for the stage resumes at once: the stage must not be in use any more
        if s.warps:
            signals.turns.offer(again=memory.apart)

    return run


def await_(block: Block, signals: Signals, s: Await, codes: tuple[Code, Code]) -> Run:
    """The closure of a wait, during which other roles run."""
    memory = signals.memory

    def run() -> None:
        block.require_all("a wait for a signal")
        number, one = stage_of(block, signals, s.signal, codes[0])
        parity = int(block.alike(codes[1].run()))
        while one.phase % 2 == parity:
            signals.turns.wait(block)
        if memory.apart:
            _require_turn(block, one, number, signals.known.setdefault(block.first, {}))
        for other in (*{id(m): m for m in one.arrived}.values(),):
            for name in signals.guarded[s.signal]:
                tile = other.tiles[name]
                other.passed(tile, number % tile.shared.stages, one.fenced)
        one.fenced, one.waited, one.arrived, one.by = True, one.phase, [], block.first

    return run


def _require_turn(block: Block, one: Stage, number: int, known: dict[int, int]) -> None:
    """Raises ThreadFault where a completed wait is ambiguous: where other threads have waited for
    the same phase, or where the role does not know that the phase before is complete."""
    what = ""
    if one.phase == one.waited and one.by not in (None, block.first):
        what = f"stage {number} is full for other threads, who have waited for it"
    if known.get(id(one), 0) < one.phase - 1:
        what = f"nothing tells that the phase of stage {number} before this one is over"
    if what:
        hint = "let groups of consumers wait for stages in turn, each for those of its own tiles"
        raise block.fault(faults.SIGNAL, what, hint)
    known[id(one)] = one.phase
    _learn(known, one.told)


def _learn(known: dict[int, int], told: dict[int, int]) -> None:
    """Adds the phases of stages that are known to be complete."""
    for stage, phases in told.items():
        known[stage] = max(phases, known.get(stage, 0))


@dataclass(frozen=True, slots=True)
class _Boxes:
    """The boxes of a tile, one for each panel."""

    block: Block
    tile: Tile
    tensor: Tensor
    map: TensorMap
    sizes: tuple[int, ...]  # of the tensor
    grid: np.ndarray  # [dimension, element]: offsets from the start of the boxes
    # For each part of the tile, the offset of each element in a stage
    elements: tuple[np.ndarray, ...]
    at: tuple[Code, ...]

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The index of each element in the tensor, and whether it is in bounds."""
        steps = enumerate(zip(self.map.steps, self.at))
        places = [self.grid[n] * by + int(self.block.alike(c.run())) for n, (by, c) in steps]
        inside = np.all([(p >= 0) & (p < e) for p, e in zip(places, self.sizes)], axis=0)
        flat = np.zeros_like(places[0])
        for place, size in zip(places, self.sizes):
            flat = flat * size + place
        return flat, inside


def _boxes(
    compiler: Compiler,
    tile: Tile,
    tensor: tuple[TensorMap, Tensor],
    at: Sequence[Code],
    parts: int = 1,
) -> _Boxes:
    """The boxes of a tile, or of one of several parts along its first axis with several elements."""
    described, source = tensor
    sizes, box = (tuple(map(compiler.number, part)) for part in (described.sizes, described.box))
    held = [n for n, extent in enumerate(box) if extent > 1 or n == len(box) - 1]
    if len(held) != len(tile.extents):
        held = list(range(len(box) - len(tile.extents), len(box)))
    first = next((n for n, extent in enumerate(tile.extents) if extent > 1), 0)
    wanted = [e // parts if n == first else e for n, e in enumerate(tile.extents)]
    whole = [box[n] for n in held[:-1]] == wanted[:-1] and tile.extents[first] % parts == 0
    if not whole or box[-1] != tile.shared.panel or tile.extents[-1] % box[-1]:
        hint = "let the box have the extents of the tile, and the width of a panel"
        what = f"boxes of {list(box)} do not fill a tile of {list(tile.extents)}"
        raise compiler.block.fault(faults.FRAGMENT, what, hint)
    grid = np.indices((*box[:-1], tile.extents[-1])).reshape(len(box), -1)
    elements = tuple(
        tile.offsets([grid[n] + (i == first) * part * wanted[first] for i, n in enumerate(held)])
        for part in range(parts)
    )
    return _Boxes(compiler.block, tile, source, described, sizes, grid, elements, tuple(at))


def box_copy(
    compiler: Compiler,
    signals: Signals,
    s: BoxCopy,
    tensor: tuple[TensorMap, Tensor],
    codes: tuple[Sequence[Code], Code, Code | None],
) -> Run:
    """The closure of a box copy. codes: the start of the boxes, the stage of tile and signal, and
    the multicast part of the tile, if any."""
    block, source = compiler.block, tensor[1]
    at, stage, part = codes
    others = signals.cluster if part is not None else [signals]
    boxes = _boxes(compiler, signals.memory.tiles[s.tile], tensor, at, len(others))
    size = len(boxes.elements[0]) * DTYPES[boxes.tile.shared.dtype]

    def run() -> None:
        threads = np.arange(block.threads) if block.active is None else np.flatnonzero(block.active)
        if len(threads) != 1:
            what = f"{len(threads)} threads start one box"
            raise block.fault(faults.SIGNAL, what, "let one thread start it")
        flat, inside = boxes.places()
        values = np.zeros(len(inside), source.data.dtype)
        values[inside] = source.data[flat[inside]]
        if boxes.map.dtype == "tf32":
            values = round_to(values, "tf32")
        owners = np.full(len(inside), block.first + threads[0])
        own = int(block.alike(part.run())) if part is not None else 0
        for other in others:
            number, one = stage_of(block, other, s.signal, stage)
            signals.reached(other, one, block)
            if part is None and size > one.expected:
                what = f"{size} bytes arrive where {one.expected} more are expected"
                hint = "expect the bytes of all boxes of a phase first"
                raise block.fault(faults.SIGNAL, what, hint)
            if one.phase > one.waited:
                raise block.fault(
                    faults.STAGE_IN_USE,
                    f"copies to stage {number} of `{s.tile.stem}`, whose last copy nobody waited for",
                    "wait until all consumers have given the stage back, those of peers too",
                )
            tile = other.memory.tiles[s.tile]
            access = Access.of(tile, boxes.elements[own] + number * tile.stage, owners)
            other.memory.fly(tile, access, values)
            one.copied.append((tile, access, values))
            one.expected -= size
            signals.turns.progress += 1
            one.settle(other.memory)

    return run


def box_store(
    compiler: Compiler,
    memory: SharedMemory,
    s: BoxStore,
    tensor: tuple[TensorMap, Tensor],
    at: Sequence[Code],
) -> Run:
    """The closure of a box store."""
    tile, target = memory.tiles[s.tile], tensor[1]
    boxes = _boxes(compiler, tile, tensor, at)
    elements = boxes.elements[0]
    access = Access.of(tile, elements, np.full(len(elements), compiler.block.first))

    def run() -> None:
        compiler.block.require_all("a store of boxes")
        values = memory.read_at_once(tile, access)
        flat, inside = boxes.places()
        target.data[flat[inside]] = values[inside]
        target.stored = True

    return run
