"""Runs thread programs in numpy: all threads of a block at once, statement by statement.

Blocks run one after the other. The interpreter tracks which registers and which shared memory were
written, and for each element of shared memory, who wrote and read it since the last barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod

import numpy as np

from backends.backend import BackendError
from backends.gpu.text import scalar_text
from backends.gpu.threads.interpreter.counts import Counts, Traffic
from backends.gpu.threads.interpreter.expressions import Compiler
from backends.gpu.threads.interpreter.handed import Handed, numbered
from backends.gpu.threads.interpreter.places import Accessor, Places, Tensor
from backends.gpu.threads.interpreter.registers import require_owners
from backends.gpu.threads.interpreter.roles import Turns
from backends.gpu.threads.interpreter.shared import SharedMemory, require_room
from backends.gpu.threads.interpreter.signals import Signals
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.interpreter.statements import Statements, run_all
from backends.gpu.threads.interpreter.values import held_as
from backends.gpu.threads.signals import CONSUMER
from backends.gpu.threads.thread import Launch, Store, ThreadProgram, statements
from backends.gpu.tile import Name, Place, expressions
from backends.shared.arrays import from_device, to_device
from machines.gpu.matrix_instructions import MatrixInstruction

_TILE, _BLOCK = Name("tile"), Name("block")
TOGETHER = 3  # blocks that run concurrently, in a launch whose blocks wait for each other


def interpret(
    program: ThreadProgram,
    sizes: Mapping[str, int],
    tensors: Mapping[str, np.ndarray],
    instructions: Sequence[MatrixInstruction],
    shared_bytes_limit: int,
    seed: int = 0,
) -> Counts:
    """Runs a program on arrays, which it writes in place, and counts its memory transactions.

    sizes: all sizes, including derived ones.
    tensors: by name, contiguous, in the device's form (`backends/shared/arrays.py`).
    instructions: the target's table.
    shared_bytes_limit: shared memory of a block.
    seed: for the order of the blocks.

    Raises ThreadFault for the first fault.
    """
    dtypes = {p.name: p.dtype for p in program.tensors}
    memory = {
        name: Tensor(name, dtypes[name], _held(array, dtypes[name]))
        for name, array in tensors.items()
        if name in dtypes
    }
    made: dict[int, _Running] = {}
    draw = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for repeat, launches in program.groups:
            for step in repeat.steps(sizes) if repeat else (0,):
                for launch in launches:
                    if id(launch) not in made:
                        made[id(launch)] = _Running(
                            launch, sizes, memory, instructions, shared_bytes_limit
                        )
                    made[id(launch)].run(step, draw)
    for name, tensor in memory.items():
        if tensor.stored:
            found = tensor.data.reshape(tensors[name].shape)
            tensors[name][...] = to_device(found, tensor.dtype)
    return Counts(tuple(row for one in made.values() for row in one.rows))


def _held(array: np.ndarray, dtype: str) -> np.ndarray:
    """A tensor as the interpreter holds it, flat."""
    return from_device(array, dtype).astype(held_as(dtype)).reshape(-1)


class _Running:
    """One launch at given sizes: its closures, and the blocks on which they run."""

    def __init__(
        self,
        launch: Launch,
        sizes: Mapping[str, int],
        tensors: dict[str, Tensor],
        instructions: Sequence[MatrixInstruction],
        limit: int,
    ):
        self.launch = launch
        compiler = Compiler(launch, sizes, Block(launch.name, launch.threads, launch.warp))
        _require_limits(launch, compiler)
        self.arrivals = {s.name: compiler.number(s.arrivals) for s in launch.signals}
        self.tiles = prod(compiler.number(t) for t in launch.tiles)
        own = [launch] * launch.consumers
        if launch.producer is not None:
            p = launch.producer
            own.append(replace(launch, threads=p.threads, once=p.once, body=p.body, end=p.end))
        self.blocks = min(launch.resident, self.tiles) if launch.resident else self.tiles
        self.handed = Handed()
        self.stored: list[Tensor] = []  # with which blocks communicate
        if launch.shares is not None:
            count = prod(map(compiler.number, launch.shares.iterations))
            self.blocks = -(-count // -(-count // launch.resident))
        if launch.shares is not None or launch.steps is not None:
            stores = [s.place for s in statements(launch.body) if isinstance(s, Store)]
            names = dict.fromkeys(p.tensor.stem for p in stores)  # type: ignore[attr-defined]
            self.stored = [tensors[n] for n in names]
        self.turns = Turns(self._goes_on)
        self.together: list[Signals] = []  # of the concurrent blocks
        self.roles: list[_Role] = []  # of each concurrent block
        size = compiler.number(launch.cluster) if launch.cluster else 1
        together = min(TOGETHER, self.blocks) if launch.shares else 1
        for _ in range(self.blocks if launch.steps else together):
            cluster: list[Signals] = []
            for _ in range(size):
                shared = {s.name: s for s in launch.shared}
                memory = SharedMemory(shared, compiler.number, compiler.block, launch.consumers > 1)
                require_room(memory, limit, launch.name)
                cluster.append(Signals(memory, self.turns, cluster))
            self.together += cluster
        for signals in self.together:
            first = 0
            for number, role in enumerate(own):
                block = Block(launch.name, role.threads, launch.warp, first=first)
                made = Compiler(role, sizes, block)
                places = Places(made, tensors)
                consumer = number if number < launch.consumers else None
                self.roles.append(_Role(made, places, signals, instructions, self.handed, consumer))
                first += role.threads
        self.rows: list[Traffic] = [row for role in self.roles for row in role.rows]

    def run(self, step: int, draw: np.random.Generator) -> None:
        """Runs all blocks of a launch at one step of its recurrence."""
        each = len(self.roles) // len(self.together)
        for numbers in self._order(draw):
            runs = []
            for place, role in enumerate(self.roles[: each * len(numbers)]):
                number = numbers[place // each]
                runs.append(partial(role.run, number, self._tiles(role, number), step))
            for signals in self.together[: len(numbers)]:
                signals.memory.begin()
                signals.begin(self.launch.signals, lambda s: self.arrivals[s.name], each)
            self._goes_on(0)
            if len(runs) == 1:
                runs[0]()
            else:
                self.turns.run(*runs)
        for tensor in self.stored:
            tensor.handed = None

    def _tiles(self, role: _Role, number: int) -> range:
        """The tiles of a block that a role processes: all, or those of its consumer group."""
        if role.consumer is None:
            return range(number, self.tiles, self.blocks)
        first = number + role.consumer * self.blocks
        return range(first, self.tiles, self.launch.consumers * self.blocks)

    def _order(self, draw: np.random.Generator) -> Iterator[list[int]]:
        """Yields the groups of concurrent blocks, by number."""
        together = len(self.together)
        if self.launch.steps is not None:
            self.handed.begin(self.stored)
            yield list(map(int, draw.permutation(self.blocks)))
            return
        if self.launch.shares is None:
            for cluster in draw.permutation(self.blocks // together):
                yield [int(cluster) * together + n for n in range(together)]
            return
        self.handed.begin(self.stored)
        counter = self.roles[0].counter(self.launch.shares.counter)
        numbers = list(numbered(counter, self.blocks))
        # Groups start in order, and run in any order inside
        for first in range(0, self.blocks, together):
            yield list(map(int, draw.permutation(numbers[first : first + together])))

    def _goes_on(self, role: int) -> None:
        """A role resumes: memory faults now belong to it."""
        for signals in self.together:
            signals.memory.block = self.roles[role].block


class _Role:
    """The program of one role's threads in a block."""

    def __init__(
        self,
        compiler: Compiler,
        places: Places,
        signals: Signals,
        instructions: Sequence[MatrixInstruction],
        handed: Handed,
        consumer: int | None,
    ):
        self.consumer = consumer  # the number of its consumer group; None: not a consumer group
        launch = self.launch = compiler.launch
        self.block, self.signals, self.places = compiler.block, signals, places
        turn = launch.steps[0] if launch.steps else None
        scalars = [n for n in (_TILE, _BLOCK, CONSUMER, launch.step, turn) if n is not None]
        self.block.variables = {n: Variable(n, "i32", (), (launch.threads,)) for n in scalars}
        used = {n for n in expressions(launch.once, launch.body) if isinstance(n, Name)}
        for f in (f for f in launch.fragments if f.name in used):
            axes = tuple(map(compiler.axis, f.axes))
            name = f"{f.name.stem or f.name.sort}{f.name.copy or ''}"
            require_owners(name, axes, launch.threads, launch.name)
            shape = (launch.threads, *(a.count for a in axes))
            self.block.variables[f.name] = Variable(f.name, f.dtype, axes, shape)
        for a in launch.accumulators:
            held = self.block.variables.get(a.fragment)
            if held is not None:
                self.block.variables[a.name] = replace(held, name=a.name)
        compiler.load = places.loaded
        signals.memory.block = self.block
        made = Statements(compiler, places, signals.memory, instructions, signals, handed)
        ends = (launch.shares.first, launch.shares.last) if launch.shares else ()
        self.ends = [compiler.of(e, ()) for e in ends]
        self.steps = compiler.number(launch.steps[1]) if launch.steps else 1
        self.once, self.body, self.end = map(made.all, (launch.once, launch.body, launch.end))
        self.rows: list[Traffic] = made.rows
        self.block.statement = None

    def run(self, number: int, tiles: Iterable[int], step: int) -> None:
        """Runs all tiles of one block."""
        self.block.number, self.block.active, self.block.barriers = number, None, 0
        for v in self.block.variables.values():
            v.value, v.partly, v.flies, v.feeds, v.loaded = None, None, False, False, -1
        self.block.flights, self.block.issued = [], None
        if self.launch.step is not None:
            self._put(self.launch.step, step)
        self._put(_BLOCK, number)
        self._put(CONSUMER, self.consumer or 0)
        if self.launch.steps is not None:
            self._put(_TILE, number)
        run_all(self.block, self.once)
        if self.ends:
            first, last = (int(self.block.alike(e.run())) for e in self.ends)
            tiles = range(last, first - 1, -1)
        before = {n for n, v in self.block.variables.items() if v.value is not None}
        for tile, turn in product(tiles, range(self.steps)):
            for name, v in self.block.variables.items():
                if name not in before:  # of the previous tile or step
                    v.value, v.partly = None, None
            self._put(_TILE, tile)
            if self.launch.steps is not None:
                self._put(self.launch.steps[0], turn)
            run_all(self.block, self.body)
        run_all(self.block, self.end)
        self.signals.ends(self.block)

    def counter(self, place: Place) -> Accessor:
        """A counter in global memory."""
        return self.places.accessor(place, ())

    def _put(self, name: Name, number: int) -> None:
        self.block.variables[name].value = np.int32(number)


def _require_limits(launch: Launch, compiler: Compiler) -> None:
    """Raises BackendError where a size exceeds what a launch supports."""
    for size, most in launch.limits:
        if (found := compiler.number(size)) > most:
            raise BackendError(
                "check",
                f"`{launch.name}` is made for {scalar_text(size)} up to {most}, not {found}; tune "
                "it for larger sizes, or tile the index",
            )
