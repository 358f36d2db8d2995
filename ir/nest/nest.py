"""The loop nest: a spec and a schedule lowered to plain data, which templates render.

A nest is a list of launches. A launch runs one thread block for each tile of its grid. A block
executes statements over values. A value is a tile held near the arithmetic units; its axes are
indices of the spec, or windows that the nest names. Statements act on the in-bounds part of a tile:
along an index `i`, `least(tile, size - origin)` elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import ceil, prod
from typing import cast

from ir.memo import Keeping, by_parts, kept
from ir.schedule import Schedule
from ir.sizes import value
from ir.spec import FLOATS, Expr, Spec, Tensor

WAYS = ("registers", "shared")  # by which a tile leaves a thread block


@dataclass(frozen=True, slots=True)
class Epilogue:
    """How a tile is stored, as decided."""

    by: str  # one of WAYS
    columns: int = 0  # of the tile that pass through shared memory at a time; 0: all


@dataclass(frozen=True, slots=True)
class Rows:
    """The layout of a tile's rows in shared memory, as decided."""

    panel: int = 0  # bytes of the swizzled panels that they are divided into; 0: they are whole
    padding: int = 0  # bytes between whole rows
    direct: bool = False  # asynchronous copies that bypass registers; panels then have no swizzle
    window: bool = False  # loads of the tensor at shifted positions share one tile


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a value."""

    name: str  # an index, or a window's name
    extent: Expr  # its capacity: a tile's size, or the whole size of an untiled index


@dataclass(frozen=True, slots=True)
class Value:
    """A tile held near the arithmetic units."""

    name: str
    tensor: str  # the tensor of the spec of which it holds a part
    dtype: str
    axes: tuple[Axis, ...]
    stages: int = 1  # pipeline stages: slots of its circular buffer
    loaded: bool = False  # filled from global memory
    rows: Rows | None = None  # in shared memory; None: the backend chooses
    # Slots of a kept value: one for each tile of a loop. None: it has `stages`.
    slots: Expr | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes, outermost first."""
        return tuple([a.name for a in self.axes])

    def extent(self, axis: str) -> Expr:
        """The extent of an axis. Raises KeyError if there is no axis of that name."""
        for a in self.axes:
            if a.name == axis:
                return a.extent
        raise KeyError(axis)


@dataclass(frozen=True, slots=True)
class Window:
    """Several indices along one axis: position = sum of coefficient * index."""

    axis: str
    terms: tuple[tuple[str, int], ...]  # (index, coefficient)


# Lines of a tensor leave a cache before others, or after others, or bypass L1.
PAST_L1 = "no_allocate"
HINTS = ("evict_first", "evict_last", PAST_L1)


@dataclass(frozen=True, slots=True)
class Tile(Expr):
    """A value as a leaf of an expression, indexed through windows."""

    value: str
    windows: tuple[Window, ...] = ()
    # Axes that hold a whole range while their index is tiled: the part at the tile's origin is
    # read.
    shifted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """The positions of one dimension of a global tensor that are read or written.

    They start at sum(coefficient * origin of index) + offset and cover the extent of `axis` in
    steps of `step`.
    """

    axis: str | None  # axis of the value; None: one position
    terms: tuple[tuple[str, int], ...]  # indices that `axis` runs over, with coefficients
    offset: Expr
    step: int = 1
    # The value that holds the positions instead (a gather). `axis` is then the first of its axes
    # and `terms` are all of them, each with coefficient 1. A loaded value has each axis once, so
    # dimensions with rows over one axis are read together element by element: x[pq // Q + i, pq % Q
    # + j], with rows over (pq, i) and (pq, j), has the axes pq, i, j.
    rows: Tile | None = None
    whole: bool = False  # covers the index's whole range, as the access is outside its loop


@dataclass(frozen=True, slots=True)
class Statement(Keeping):
    """One operation of a thread block; the subclasses define them."""


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """value = the region of the tensor."""

    value: str
    tensor: str
    region: tuple[Slice, ...]
    pad: float | None = None  # value of positions out of bounds; None: there are none
    # The grid's last index, if tiles along it read the same region once and share it; in the
    # prologue all thread blocks share it.
    shared: str | None = None
    bulk: bool = False  # moved by the machine's DMA engine
    cache: str = ""  # a cache hint, of HINTS; empty: the hardware decides


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """The region of the tensor = value."""

    tensor: str
    region: tuple[Slice, ...]
    value: str
    # Indices: only thread blocks in which their origins are all 0 store; in the launch's `once`
    #     block any one thread block does.
    once: tuple[str, ...] = ()
    bulk: bool = False  # moved by the machine's DMA engine
    # "sum": atomic addition to memory; a position can occur repeatedly, in any order.
    reduction: str = ""
    cache: str = ""  # as in `Load`
    epilogue: Epilogue | None = None  # None: the backend chooses


@dataclass(frozen=True, slots=True)
class Fill(Statement):
    """value = number, everywhere."""

    value: str
    number: float | int


@dataclass(frozen=True, slots=True)
class Map(Statement):
    """value = an expression over tiles, sizes, numbers and indices, element by element.

    An index with a tile of one that the value lacks is dropped.
    """

    value: str
    expression: Expr


@dataclass(frozen=True, slots=True)
class Reduction(Statement):
    """value = reduction of source over `over`."""

    value: str
    reduction: str  # kind of reduction
    source: Tile
    over: tuple[str, ...]
    accumulate: bool  # start from what value holds


@dataclass(frozen=True, slots=True)
class Dot(Statement):
    """value = (or +=) sum of a * b over the indices that value lacks, on the matrix unit."""

    value: str
    a: Tile
    b: Tile
    over: tuple[str, ...]
    accumulate: bool
    # Number of parts of M and of N, each computed by one warp; None: the backend chooses.
    warps: tuple[int, int] | None = None
    # M, N and K of the matrix instruction; None: the backend chooses.
    instruction: tuple[int, int, int] | None = None
    # Whether it runs one iteration later, on the operand that the previous iteration computed.
    overlaps: bool = False
    # Whether the matmul before it also runs one iteration ahead.
    ahead: bool = False
    # Scales of a and b (block-scaled matmul): one for each block along the last index of `over`.
    scales: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall(Statement):
    """value = the content that it had at this tile of `index` in an earlier loop over it, which
    kept each tile."""

    value: str
    index: str


@dataclass(frozen=True, slots=True)
class Scan(Statement):
    """value = running reduction of source along an index.

    It starts from `carry` and stores the last result there.
    """

    value: str
    reduction: str
    source: Tile
    along: str
    carry: str


@dataclass(frozen=True, slots=True)
class Search(Statement):
    """value = the number of the `count` sorted entries of `borders` that are less than source."""

    value: str
    source: Tile
    borders: Tile
    count: Expr


@dataclass(frozen=True, slots=True)
class Take(Statement):
    """value = the entries of `table` along its `axis` at the positions in `at`."""

    value: str
    table: Tile
    axis: str
    count: Expr
    at: Tile


@dataclass(frozen=True, slots=True)
class Bound:
    """A loop bound: a size expression, or an entry of an integer tensor."""

    size: Expr | None = None  # an `Index` in it is the origin of that index's tile
    tensor: str = ""
    position: Slice | None = None  # sum(coefficient * origin) + offset, where `tensor` is read

    @property
    def entry(self) -> Slice:
        """The position of a bound that is an entry of a tensor."""
        return cast(Slice, self.position)


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """The body for each tile of an index, in order."""

    index: str
    tile: int
    low: Bound
    high: Bound
    body: tuple[Statement, ...]
    backwards: bool = False  # from the last to the first
    unroll: int = 0  # iterations that the compiler unrolls; 0: it chooses


@dataclass(frozen=True, slots=True)
class Roles:
    """Decisions on the producer threads of a block, which start bulk copies for the others."""

    producers: int  # threads
    registers: int = 0  # of each producer thread; 0: the backend chooses


@dataclass(frozen=True, slots=True)
class GridAxis:
    """An index whose tiles run in parallel."""

    index: str
    tile: int
    size: Expr  # of the index


@dataclass(frozen=True, slots=True)
class Rasterization:
    """L2 swizzle (GROUP_M) of the grid.

    `size` adjacent tiles of `index` are walked together along all of `over`, then the next `size`.
    """

    index: str
    over: str
    size: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """`size` adjacent tiles of `index` belong to thread blocks that run together.

    They can access each other's shared memory.
    """

    index: str
    size: int


@dataclass(frozen=True, slots=True)
class StreamK:
    """The blocks of a persistent launch have equal shares of all iterations of a loop over all
    tiles.

    A block that does not finish a tile stores its partial sum of that tile.
    """

    index: str  # of the loop
    value: str = ""  # the sum
    partials: str = ""  # the tensor of the partial sums that blocks store: [block, axes of the sum]
    # whether each block has stored its partial sum, then how many blocks have started
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Meeting:
    """The blocks of a launch run all steps of its recurrence, with a grid barrier between steps."""

    flags: str = ""  # the tensor with a flag of each block for each step: [steps * blocks]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Consecutive launches that run again for each step of a recurrence, in order.

    The step is an argument of the launches.
    """

    index: str  # of the steps
    size: Expr  # of the index
    of: str  # the first tensor of the recurrence
    backwards: bool = False  # from the last step to the first

    def steps(self, sizes: Mapping[str, float]) -> range:
        """The values of the index, in the order in which they run."""
        forwards = range(value(self.size, sizes))
        return forwards[::-1] if self.backwards else forwards


@dataclass(frozen=True, slots=True)
class Parameter:
    """A global tensor of a launch."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    role: str  # input, output or workspace
    # Of an output that is a part of it: the part's shape. Empty: the kernel stores all of it.
    own: tuple[Expr, ...] = ()

    @property
    def extent(self) -> tuple[Expr, ...]:
        """The shape of the part that the kernel stores."""
        return self.own or self.shape


def parameter(tensor: Tensor, role: str) -> Parameter:
    """A tensor of a spec as a parameter."""
    own = tensor.shape if tensor.part is not None else ()
    return Parameter(tensor.name, tensor.dtype, tensor.memory, role, own)


@dataclass(frozen=True, slots=True)
class Launch(Keeping):
    """One kernel launch over one grid."""

    name: str
    parameters: tuple[Parameter, ...]
    sizes: tuple[str, ...]
    grid: tuple[GridAxis, ...]
    values: tuple[Value, ...]
    once: tuple[Statement, ...]  # prologue: no grid index occurs in it
    body: tuple[Statement, ...]
    tiles: tuple[tuple[str, int], ...]  # of every tiled index, its tile
    whole: tuple[tuple[str, Expr], ...]  # of every other index, its size
    threads: int = 0  # threads per thread block; 0: the backend chooses
    rasterization: Rasterization | None = None  # None: row-major order of tiles
    resident: int = 0  # persistent thread blocks per processor; 0: one thread block per tile
    specialized: bool = False  # recompiled for each set of sizes, which are constants in it
    registers: int = 0  # the most per thread; 0: the compiler chooses
    cluster: Cluster | None = None  # None: no clusters
    roles: Roles | None = None  # None: the backend chooses
    pingpong: bool = False  # whether two groups of `threads` alternate on tiles
    stream_k: StreamK | None = None  # None: a block computes whole tiles
    meeting: Meeting | None = None  # None: a launch for each step
    # The steps of its recurrence; their index has a tile of one, whose origin is the step.
    repeat: Repeat | None = None

    def __hash__(self) -> int:
        # A few of the fields tell most launches of a kernel apart; a hash of all took longer than what it saved.
        return hash((self.name, self.tiles, self.threads))

    def value(self, name: str) -> Value:
        """The value with a name. Raises KeyError if there is none."""
        for v in self.values:
            if v.name == name:
                return v
        raise KeyError(name)

    def times(self, sizes: Mapping[str, int]) -> int:
        """The number of times that it is launched."""
        return len(self.repeat.steps(sizes)) if self.repeat else 1

    def grid_tiles(self, sizes: Mapping[str, int]) -> int:
        """The number of tiles of its grid."""
        return prod(ceil(value(g.size, sizes) / g.tile) for g in self.grid)

    def statements(self) -> Iterator[Statement]:
        """Every statement, loops before their bodies."""
        return iter(self._statements())

    @kept
    def _statements(self) -> tuple[Statement, ...]:
        return _statements(self)


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A lowered candidate."""

    spec: Spec
    variant: Spec  # the rewritten equations, equal to the spec's
    schedule: Schedule
    machine: str
    sizes: tuple[tuple[str, int], ...]  # those it was tuned for; it computes any others, too
    launches: tuple[Launch, ...]

    def groups(self) -> Iterator[tuple[Repeat | None, tuple[Launch, ...]]]:
        """The launches in order, grouped by the recurrence whose steps they run."""
        for repeat, launches in groupby(self.launches, key=lambda one: one.repeat):
            yield repeat, tuple(launches)

    @property
    def unordered(self) -> bool:
        """Whether floats are added atomically, so that the last bits vary from run to run."""
        return any(
            isinstance(s, Store) and s.reduction and p.name == s.tensor and p.dtype in FLOATS
            for launch in self.launches
            for s in launch.statements()
            for p in launch.parameters
        )


@by_parts("once", "body")
def _statements(launch: Launch) -> tuple[Statement, ...]:
    return (*_walk(launch.once), *_walk(launch.body))


def _walk(block: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in block:
        yield statement
        if isinstance(statement, Loop):
            yield from _walk(statement.body)
