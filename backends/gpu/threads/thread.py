"""Thread programs: what each thread of a block does, as values that backends print as C-like GPU
code.

    TileProgram -> ThreadProgram: an owner for each element, shared memory, barriers, instructions

Scalars and elements are expressions of `ir.spec` and `backends.gpu.tile`. A tile of the tile
program becomes a fragment: registers that each thread holds. The layout of a fragment is a product
of the layouts of its axes, so a fragment is an array with one dimension of registers for each axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from backends.gpu.threads.fragments import Accumulator, Axis, Fragment, Shared, Vector
from backends.gpu.threads.fragments import Instruction as Instruction
from backends.gpu.threads.multiplies import Interleave as Interleave
from backends.gpu.threads.multiplies import Multiply as Multiply
from backends.gpu.threads.multiplies import Statement
from backends.gpu.threads.multiplies import TensorLoad as TensorLoad
from backends.gpu.threads.multiplies import TensorMultiply as TensorMultiply
from backends.gpu.threads.multiplies import WarpgroupMultiply as WarpgroupMultiply
from backends.gpu.threads.multiplies import WarpgroupWait as WarpgroupWait
from backends.gpu.threads.signals import Signal, TensorMap
from backends.gpu.tile import Name, Place, Power, Shares
from ir.nest.nest import Parameter, Repeat
from ir.spec import Equation, Expr

# -- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Element(Expr):
    """The element of a fragment at the current register of each of its axes."""

    name: Name
    axes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread(Expr):
    """The index of the thread in its block."""


@dataclass(frozen=True, slots=True)
class Exponent(Expr):
    """The base-2 exponent of a power."""

    power: Power


@dataclass(frozen=True, slots=True)
class PowerOfTwo(Expr):
    """2 to the power of an `Exponent` that was computed before."""

    exponent: Expr


@dataclass(frozen=True, slots=True)
class All(Expr):
    """Whether all conditions on launch constants hold."""

    conditions: tuple[Expr, ...]


# -- statements -----------------------------------------------------------------------------------


Block = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Each(Statement):
    """For every register of a fragment: name = value."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Positions(Statement):
    """For every register of a one-dimensional fragment: its position, plus an origin."""

    name: Name
    origin: Expr | None


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """For every register of a fragment: name = the element at a place in global memory."""

    name: Name
    place: Place
    other: Expr  # the value where the mask of the place does not hold
    vector: Vector | None = None
    cache: str = ""  # a cache hint, of `ir.nest.nest.HINTS`


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """For every register of these axes: the element at a place in global memory = value.

    Of several threads that hold the same elements, those with `thread & copies == 0` store.
    """

    place: Place
    value: Expr
    axes: tuple[Axis, ...]
    copies: int = 0
    reduction: str = ""  # of an atomic update; empty: a plain store
    vector: Vector | None = None
    cache: str = ""  # as in `Load`


@dataclass(frozen=True, slots=True)
class Reduce(Statement):
    """name = reduction of a value over each thread's registers along one axis.

    axes: those of the value, including the reduced one. Elements of `name` have the others.
    """

    name: Name
    reduction: str
    value: Expr
    axes: tuple[Axis, ...]
    over: str
    nan: bool  # whether NaNs propagate


@dataclass(frozen=True, slots=True)
class Shuffle(Statement):
    """For every register of a fragment: combines it with those of the threads at XOR distances."""

    name: Name
    reduction: str
    distances: tuple[int, ...]  # less than a warp, in sequence
    nan: bool


@dataclass(frozen=True, slots=True)
class Scan(Statement):
    """name = scan of a value along an axis whose threads are in one warp.

    The axis covers its positions in order: registers of a run, then threads, then repetitions.
    """

    name: Name
    reduction: str
    value: Expr
    over: str
    nan: bool
    # Where several warps hold the axis, each scans its part of each repetition separately. This
    # fragment receives the total of each part; its last axis counts the parts.
    totals: Name | None = None


@dataclass(frozen=True, slots=True)
class ScanAfter(Statement):
    """Adds the totals of the parts before a thread's own to the separate scans of warps."""

    name: Name  # the result of a `Scan` with `totals`
    before: Name  # the totals of all parts, in order along the last axis
    totals: Name  # those of the scan; its last axis identifies a thread's own parts
    reduction: str
    over: str
    nan: bool


@dataclass(frozen=True, slots=True)
class SharedStore(Statement):
    """Stores every register of a fragment into a shared memory tile, at its position."""

    tile: Name
    name: Name
    stage: Expr | None = None
    copies: int = 0  # as in `Store`


@dataclass(frozen=True, slots=True)
class SharedLoad(Statement):
    """Loads every register of a fragment from a shared memory tile, at its position.

    at: start of the fragment's positions along axes of the tile, a multiple of their span.
    """

    name: Name
    tile: Name
    stage: Expr | None = None
    at: tuple[tuple[str, Expr], ...] = ()
    # The instruction: "" for plain loads; "matrix" for ldmatrix of 8 x 8 matrices of 16-bit
    # elements, whose rows are contiguous in the fragment's register pairs; "transposed" where its
    # columns are.
    by: str = ""


@dataclass(frozen=True, slots=True)
class Copy(Statement):
    """Copies a region of global memory into a shared memory tile without registers (cp.async).

    axes: the distribution of the elements over threads. Where `vector` does not hold, elements are
    stored one by one. Elements become 0 where the mask does not hold.
    """

    tile: Name
    place: Place
    axes: tuple[Axis, ...]
    stage: Expr | None = None
    vector: Vector | None = None
    cache: str = ""  # as in `Load`
    # Bytes of one thread's copy, where the threads of a warp fill consecutive addresses; other
    # copies pass through registers. 0: each thread has its own address.
    direct: int = 0


@dataclass(frozen=True, slots=True)
class Commit(Statement):
    """Commits the copies issued since the last commit as one group."""


@dataclass(frozen=True, slots=True)
class Wait(Statement):
    """Waits until at most `pending` groups of this thread's copies are in flight."""

    pending: int


@dataclass(frozen=True, slots=True)
class BoxCopy(Statement):
    """Copies a box of a global tensor into a shared memory tile by the TMA; one thread issues it.

    Out-of-bounds elements become 0. The bytes arrive at a stage of the signal.

    part: for a tile that all blocks of a cluster read (multicast). The tile is divided along its
    first axis of several elements. This block copies part number `part` into all blocks, and its
    bytes arrive at each block's signal.
    """

    tile: Name
    map: Name
    at: tuple[Expr, ...]  # the box's first element along each dimension of the tensor
    stage: Expr
    signal: Name
    part: Expr | None = None
    cache: str = ""  # as in `Load`


@dataclass(frozen=True, slots=True)
class BoxStore(Statement):
    """Copies a shared memory tile to a box of a global tensor by the TMA. The first thread issues
    it, and waits until the tile was read. Out-of-bounds elements are not stored."""

    tile: Name
    map: Name
    at: tuple[Expr, ...]  # as in `BoxCopy`
    cache: str = ""  # as in `Load`


@dataclass(frozen=True, slots=True)
class Arrive(Statement):
    """Threads arrive at a stage of a signal: all of them, or the first of each warp after the rest
    of its warp.

    expects: tiles of whose stage the bytes are to arrive as well. everywhere: arrives at the
    signals of all blocks of the cluster.
    """

    signal: Name
    stage: Expr
    warps: bool = False
    expects: tuple[Name, ...] = ()
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Await(Statement):
    """Waits until a stage of a signal has completed the phase with this parity; the first phase has parity 0."""

    signal: Name
    stage: Expr
    parity: Expr


@dataclass(frozen=True, slots=True)
class Fence(Statement):
    """Proxy fence. This thread's earlier shared memory writes become visible to the async proxy
    once it is signalled. This thread's earlier shared memory loads are complete before the async
    proxy is told that it may write."""


@dataclass(frozen=True, slots=True)
class DeviceFence(Statement):
    """Device-scope fence: orders this thread's accesses to global memory before and after it, for
    all threads of the GPU."""


@dataclass(frozen=True, slots=True)
class Raise(Statement):
    """Sets a flag in global memory from 0 to 1."""

    flag: Place


@dataclass(frozen=True, slots=True)
class AwaitRaised(Statement):
    """Waits until a flag in global memory is 1. With a count: waits for so many flags, distributed
    over the threads, followed by a fence."""

    flag: Place
    count: Expr | None = None


@dataclass(frozen=True, slots=True)
class Barrier(Statement):
    """Block-wide barrier, after which all shared memory writes are visible to all threads.

    proxy: also to instructions that read shared memory through the async proxy.
    """

    proxy: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBarrier(Statement):
    """Barrier of all threads of all blocks of a cluster."""


@dataclass(frozen=True, slots=True)
class Regroup(Statement):
    """Reinterprets the registers of a fragment under other axes, in any order. Each of `groups` is
    one axis of one fragment and several axes of the other, whose registers enumerate those of the
    one axis, last axis fastest. No element moves.

    split: `source` has the single axis of each group; otherwise `name` has it.
    """

    name: Name
    source: Name
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    split: bool


@dataclass(frozen=True, slots=True)
class Part(Statement):
    """A slice of a fragment's registers along an axis, from `first` on. Its positions along that axis begin at 0."""

    name: Name
    source: Name
    axis: str
    first: Expr  # a register of `source`


@dataclass(frozen=True, slots=True)
class Guard(Statement):
    """Executes `body` where a scalar condition holds, else `others`."""

    condition: Expr
    body: tuple[Statement, ...]
    others: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """Executes the body for each value of a scalar from low to high in steps."""

    name: Name
    low: Expr
    high: Expr
    step: int
    body: tuple[Statement, ...]
    unrolled: bool = False
    # Whether it has an iteration at all sizes. Otherwise the compiler has to merge register values
    # with those of the other case, and cannot keep matmuls in flight that accumulate into them.
    certain: bool = False


# -- launches -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Producer:
    """The producer role: threads after the block's other threads, which only fill shared memory."""

    threads: int
    # Registers per producer thread and per other thread, if they are reallocated (setmaxnreg)
    registers: tuple[Expr, Expr] | None
    once: tuple[Statement, ...]  # before the first tile
    body: tuple[Statement, ...]  # for each tile
    end: tuple[Statement, ...] = ()  # after the last tile


@dataclass(frozen=True, slots=True)
class Launch:
    """A grid of thread blocks."""

    name: str
    equations: tuple[Equation, ...]  # that it computes
    tensors: tuple[str, ...]
    sizes: tuple[str, ...]  # that it reads
    specialized: bool  # whether sizes are compile-time constants
    step: Name | None  # of a recurrence, the argument with its step
    attributes: tuple[tuple[str, float | int | bool], ...]  # constants of the spec
    constants: tuple[tuple[Name, Expr], ...]  # with the expressions that the launcher computes
    tiles: tuple[Expr, ...]  # number of tiles, a product
    resident: int  # persistent blocks; 0: one block for each tile
    threads: int  # of a block, or of each consumer group
    warp: int  # threads of a warp
    fragments: tuple[Fragment, ...]
    shared: tuple[Shared, ...]
    once: tuple[Statement, ...]  # before the first tile
    body: tuple[Statement, ...]  # for each tile, whose number is the scalar `tile`
    limits: tuple[tuple[Expr, int], ...] = ()  # sizes, each with the most that the launch supports
    signals: tuple[Signal, ...] = ()
    maps: tuple[TensorMap, ...] = ()
    producer: Producer | None = None
    registers: int = 0  # limit per thread; 0: the compiler chooses
    cluster: Name | None = None  # the constant with the cluster size; None: no clusters
    end: tuple[Statement, ...] = ()  # after the last tile
    # Stream-K shares; None: blocks have whole tiles. What precedes is in `once`
    shares: Shares | None = None
    consumers: int = 1  # consumer groups; 2 alternate between tiles (ping-pong)
    steps: tuple[Name, Expr] | None = None  # as in the tile program
    accumulators: tuple[Accumulator, ...] = ()  # in tensor memory, consecutive

    @property
    def block_threads(self) -> int:
        """The threads of a block in all its roles."""
        return self.threads * self.consumers + (self.producer.threads if self.producer else 0)

    def fragment(self, name: Name) -> Fragment:
        """The fragment with this name."""
        return next(f for f in self.fragments if f.name == name)


@dataclass(frozen=True, slots=True)
class ThreadProgram:
    """A kernel: its launches in order, grouped where they repeat together."""

    name: str
    groups: tuple[tuple[Repeat | None, tuple[Launch, ...]], ...]
    tensors: tuple[Parameter, ...]  # inputs, then the tensors that are computed

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches."""
        return tuple(one for _, launches in self.groups for one in launches)


def statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, outer ones first."""
    for s in block:
        yield s
        yield from statements((*getattr(s, "body", ()), *getattr(s, "others", ())))


def changed_inside(s: Statement, change: Callable[[Block], Block]) -> Statement:
    """A statement with its nested blocks changed."""
    match s:
        case Loop(body=body):
            return replace(s, body=change(body))
        case Guard(body=body, others=others):
            return replace(s, body=change(body), others=change(others))
    return s
