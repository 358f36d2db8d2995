"""A thread program: what each thread of a block does, as values that C-like GPU languages spell.

    TileProgram -> ThreadProgram: an owner for each element, shared memory, barriers, instructions

Scalars and elements are expressions of `ir.spec` and `backends.gpu.tile`. A tile of the tile program
is a fragment here: registers that each thread holds. The layout of a fragment is a product of the
layouts of its axes, so a fragment is an array with one dimension of registers for each axis.
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
    """The number of the thread in its block."""


@dataclass(frozen=True, slots=True)
class Exponent(Expr):
    """The exponent of 2 of a power."""

    power: Power


@dataclass(frozen=True, slots=True)
class PowerOfTwo(Expr):
    """2 to the power of an `Exponent`, which was computed before."""

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
    """For every register of a fragment with one axis: its position, after an origin."""

    name: Name
    origin: Expr | None


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """For every register of a fragment: name = the element at a place of global memory."""

    name: Name
    place: Place
    other: Expr  # where the mask of the place does not hold
    vector: Vector | None = None
    cache: str = ""  # a hint to the caches, of `ir.nest.nest.HINTS`


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """For every register of axes: the element at a place of global memory = value.

    Of several threads that hold the same elements, those with `thread & copies == 0` store."""

    place: Place
    value: Expr
    axes: tuple[Axis, ...]
    copies: int = 0
    reduction: str = ""  # joined atomically with what is there
    vector: Vector | None = None
    cache: str = ""  # as in `Load`


@dataclass(frozen=True, slots=True)
class Reduce(Statement):
    """name = reduction of a value over the registers of one axis of each thread.

    axes: of the value, the reduced one among them. Elements of `name` have the others."""

    name: Name
    reduction: str
    value: Expr
    axes: tuple[Axis, ...]
    over: str
    nan: bool  # whether NaN in it must give NaN


@dataclass(frozen=True, slots=True)
class Shuffle(Statement):
    """For every register of a fragment: joined with those of the threads at XOR distances."""

    name: Name
    reduction: str
    distances: tuple[int, ...]  # less than a warp, one after the other
    nan: bool


@dataclass(frozen=True, slots=True)
class Scan(Statement):
    """name = running reduction of a value along an axis, whose threads are in one warp.

    The axis covers its positions in order: registers of a run, then threads, then repetitions.
    """

    name: Name
    reduction: str
    value: Expr
    over: str
    nan: bool
    # Where several warps hold the axis, each scans its part of each repetition by itself. This fragment
    # gets the whole of each part; its last axis counts the parts.
    totals: Name | None = None


@dataclass(frozen=True, slots=True)
class ScanAfter(Statement):
    """Joins the parts before a thread's own to what each warp scanned by itself."""

    name: Name  # the result of a `Scan` with `totals`
    before: Name  # the totals of all parts, in order along the last axis
    totals: Name  # those of the scan; its last axis tells a thread's own parts
    reduction: str
    over: str
    nan: bool


@dataclass(frozen=True, slots=True)
class SharedStore(Statement):
    """Every register of a fragment into a tile of shared memory, by its position."""

    tile: Name
    name: Name
    stage: Expr | None = None
    copies: int = 0  # as in `Store`


@dataclass(frozen=True, slots=True)
class SharedLoad(Statement):
    """Every register of a fragment from a tile of shared memory, by its position.

    at: along axes of the tile, where the fragment's positions begin: a multiple of what they span.
    """

    name: Name
    tile: Name
    stage: Expr | None = None
    at: tuple[tuple[str, Expr], ...] = ()
    # The instruction: "", or "matrix" for 8 x 8 matrices of 16-bit elements whose rows are
    # contiguous in the fragment's pairs of registers, or "transposed" where its columns are.
    by: str = ""


@dataclass(frozen=True, slots=True)
class Copy(Statement):
    """A region of global memory into a tile of shared memory, past the registers.

    axes: how the elements are distributed over threads. Where `vector` does not hold, elements are
    stored one by one. Elements where the mask does not hold become 0.
    """

    tile: Name
    place: Place
    axes: tuple[Axis, ...]
    stage: Expr | None = None
    vector: Vector | None = None
    cache: str = ""  # as in `Load`
    # Bytes that a thread moves at once, those of the threads of a warp to consecutive places; others
    # pass through registers. 0: each thread says where its elements go.
    direct: int = 0


@dataclass(frozen=True, slots=True)
class Commit(Statement):
    """Closes the group of the copies that were started since the last one."""


@dataclass(frozen=True, slots=True)
class Wait(Statement):
    """Waits until at most `pending` groups of this thread's copies are in flight."""

    pending: int


@dataclass(frozen=True, slots=True)
class BoxCopy(Statement):
    """A box of a global tensor into a tile of shared memory, by the DMA engine: one thread starts it.

    Elements outside of the tensor become 0. The bytes arrive at a stage of the signal.

    part: of a tile that blocks of a cluster read alike, the number of the part along its first axis of
    several elements that this block copies to the same place in all of them, and whose bytes arrive at
    the signal of each (multicast).
    """

    tile: Name
    map: Name
    at: tuple[Expr, ...]  # where the box begins along each dimension of the tensor
    stage: Expr
    signal: Name
    part: Expr | None = None
    cache: str = ""  # as in `Load`


@dataclass(frozen=True, slots=True)
class BoxStore(Statement):
    """A tile of shared memory to a box of a global tensor, by the DMA engine: the first thread starts
    it, and waits until the tile was read. What lies outside of the tensor is left out."""

    tile: Name
    map: Name
    at: tuple[Expr, ...]  # as in `BoxCopy`
    cache: str = ""  # as in `Load`


@dataclass(frozen=True, slots=True)
class Arrive(Statement):
    """Threads arrive at a stage of a signal: all of them, or the first of each warp after the others
    of its warp have come here.

    expects: tiles of which as many bytes as a stage has are to arrive as well. everywhere: at the
    signals of all blocks of the cluster.
    """

    signal: Name
    stage: Expr
    warps: bool = False
    expects: tuple[Name, ...] = ()
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Await(Statement):
    """Waits until a stage of a signal is through a phase of a parity: 0 is the first one's."""

    signal: Name
    stage: Expr
    parity: Expr


@dataclass(frozen=True, slots=True)
class Fence(Statement):
    """What this thread wrote to shared memory is visible to instructions that read it past the
    registers, once they are told of it; and what it loaded from there has arrived, before they are told
    that they may write."""


@dataclass(frozen=True, slots=True)
class DeviceFence(Statement):
    """What this thread knows of global memory comes before what it reads and writes from here on, for
    all threads of the GPU."""


@dataclass(frozen=True, slots=True)
class Raise(Statement):
    """A flag in global memory, which was 0, becomes 1."""

    flag: Place


@dataclass(frozen=True, slots=True)
class AwaitRaised(Statement):
    """Waits until a flag in global memory is 1. With a count: so many, of which each thread awaits some, and a fence."""

    flag: Place
    count: Expr | None = None


@dataclass(frozen=True, slots=True)
class Barrier(Statement):
    """All threads of the block wait for each other; what they wrote to shared memory is visible.

    proxy: to instructions that read shared memory past the registers, too.
    """

    proxy: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBarrier(Statement):
    """All threads of all blocks of the cluster wait for each other."""


@dataclass(frozen=True, slots=True)
class Regroup(Statement):
    """The registers of a fragment under other axes, in any order: each of `groups` is one axis of
    the one fragment and several of the other, whose registers count through those of the one, the
    last fastest. No element moves.

    split: `source` has the one axis of each group; else `name` has it.
    """

    name: Name
    source: Name
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    split: bool


@dataclass(frozen=True, slots=True)
class Part(Statement):
    """A fragment = the registers of another one from some on along an axis. Its positions along it
    begin at 0."""

    name: Name
    source: Name
    axis: str
    first: Expr  # a register of `source`


@dataclass(frozen=True, slots=True)
class Guard(Statement):
    """The body where a condition holds, else the others. A condition without axes."""

    condition: Expr
    body: tuple[Statement, ...]
    others: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """The body for each value of a scalar from low to high in steps."""

    name: Name
    low: Expr
    high: Expr
    step: int
    body: tuple[Statement, ...]
    unrolled: bool = False
    # Whether it has an iteration at all sizes. A compiler that does not know it has to give registers
    # another value for the other case, and so cannot leave matmuls that add to them in flight.
    certain: bool = False


# -- launches -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Producer:
    """Threads after those of the block's others, which only fill shared memory."""

    threads: int
    registers: tuple[Expr, Expr] | None  # of each of them and of each other thread, where they move
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
    specialized: bool  # whether they are constants in it
    step: Name | None  # of a recurrence, the argument that tells its step
    attributes: tuple[tuple[str, float | int | bool], ...]  # constants of the spec
    constants: tuple[tuple[Name, Expr], ...]  # with what the launcher computes
    tiles: tuple[Expr, ...]  # how many there are, a product
    resident: int  # thread blocks that walk through them; 0: one for each
    threads: int  # of a block, or of each group of its consumers
    warp: int  # threads that run in step
    fragments: tuple[Fragment, ...]
    shared: tuple[Shared, ...]
    once: tuple[Statement, ...]  # before the first tile
    body: tuple[Statement, ...]  # for each tile, whose number is the scalar `tile`
    limits: tuple[tuple[Expr, int], ...] = ()  # sizes, with the most that the launch is made for
    signals: tuple[Signal, ...] = ()
    maps: tuple[TensorMap, ...] = ()
    producer: Producer | None = None
    registers: int = 0  # the most of a thread, 0: the compiler chooses
    cluster: Name | None = None  # the constant with the blocks of a cluster; None: no clusters
    end: tuple[Statement, ...] = ()  # after the last tile
    shares: Shares | None = None  # None: blocks have whole tiles; what comes before is in `once`
    consumers: int = 1  # groups of them, which take turns with tiles
    steps: tuple[Name, Expr] | None = None  # as in the tile program
    accumulators: tuple[Accumulator, ...] = ()  # in tensor memory, one after the other

    @property
    def block_threads(self) -> int:
        """The threads of a block in all its roles."""
        return self.threads * self.consumers + (self.producer.threads if self.producer else 0)

    def fragment(self, name: Name) -> Fragment:
        """The fragment of a name."""
        return next(f for f in self.fragments if f.name == name)


@dataclass(frozen=True, slots=True)
class ThreadProgram:
    """A kernel: its launches in order, those of the same steps together."""

    name: str
    groups: tuple[tuple[Repeat | None, tuple[Launch, ...]], ...]
    tensors: tuple[Parameter, ...]  # inputs, then what is made

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
    """A statement with the blocks in it changed."""
    match s:
        case Loop(body=body):
            return replace(s, body=change(body))
        case Guard(body=body, others=others):
            return replace(s, body=change(body), others=change(others))
    return s
