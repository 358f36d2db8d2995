"""A loop nest: spec + schedule as plain data, the value that templates render.

A nest is a list of launches. A launch runs one program for each tile of its grid; the program
is a block of statements over values. A value is a tile held near the arithmetic: its axes are
indices of the spec, or windows that the nest names. Statements act on the part of a tile that
lies inside the tensor: along an index `i` that is `least(tile, size - origin)` elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from ir.memo import Keeping, kept
from ir.schedule import Schedule
from ir.sizes import value
from ir.spec import FLOATS, Expr, Spec


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a value. name: an index, or a window's name.

    extent: how many elements the value has room for, a size expression (a tile's size is a
    number, an untiled index has its whole size).
    """

    name: str
    extent: Expr


@dataclass(frozen=True, slots=True)
class Value:
    """A tile. depth: how many of it are in flight (a circular buffer).  loaded: filled from
    global memory.  tensor: the tensor of the spec that it holds a part of."""

    name: str
    tensor: str
    dtype: str
    axes: tuple[Axis, ...]
    depth: int = 1
    loaded: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes, outermost first."""
        return tuple(a.name for a in self.axes)


@dataclass(frozen=True, slots=True)
class Window:
    """How an axis of a value is walked: position = sum of coefficient * index."""

    axis: str
    terms: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Tile(Expr):
    """A leaf of an expression: a value, seen through windows.

    shifted: axes that hold a whole extent while the index runs tile by tile; the part at the
    index's origin is meant.
    """

    value: str
    windows: tuple[Window, ...] = ()
    shifted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """Where one dimension of a global tensor is read or written.

    Positions start at sum(coefficient * origin of index) + offset and go on for the extent of
    `axis` in steps of `step`; no axis: that one position.  terms: the indices that `axis` runs
    over, with coefficients.

    rows: the value that holds the positions instead. `axis` is the first of its axes, and terms
    are all of them, each with 1. What is loaded has an axis for each once: dimensions with rows
    over the same axis go together element by element (`x[pq // Q + i, pq % Q + j]` for rows over
    pq, i and over pq, j has the axes pq, i, j).
    """

    axis: str | None
    terms: tuple[tuple[str, int], ...]
    offset: Expr
    step: int = 1
    rows: Tile | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One step of a program; each sort below says what it does."""


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """value = the region of the tensor; positions outside read as `pad`, None: there are none.

    shared: the grid's last index, where tiles side by side along it take the same region, so
    that it is read once for them.  bulk: moved by the machine's copy engine.
    """

    value: str
    tensor: str
    region: tuple[Slice, ...]
    pad: float | None = None
    shared: str | None = None
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """The region of the tensor = value; only where the origins of `once` are all zero.

    In the launch's own `once` block a store is done by one program, whichever.  bulk: moved by
    the machine's copy engine.  fold: "sum" where the value is added to what is there, in one step
    that no other program comes between, and places may be stored again and again, in any order.
    """

    tensor: str
    region: tuple[Slice, ...]
    value: str
    once: tuple[str, ...] = ()
    bulk: bool = False
    fold: str = ""


@dataclass(frozen=True, slots=True)
class Fill(Statement):
    """value = number, everywhere."""

    value: str
    number: float | int


@dataclass(frozen=True, slots=True)
class Map(Statement):
    """value = expression over tiles, sizes, numbers and indices, element by element; an index with
    a tile of one that the value lacks is dropped."""

    value: str
    expression: Expr


@dataclass(frozen=True, slots=True)
class Fold(Statement):
    """value = fold of source over `over`; with `accumulate`, folded onto what value holds."""

    value: str
    fold: str
    source: Tile
    over: tuple[str, ...]
    accumulate: bool


@dataclass(frozen=True, slots=True)
class Dot(Statement):
    """value = (or +=) sum of a * b over the indices that value lacks, on the matrix unit."""

    value: str
    a: Tile
    b: Tile
    over: tuple[str, ...]
    accumulate: bool


@dataclass(frozen=True, slots=True)
class Scan(Statement):
    """value = running fold of source along an index, from and into `carry`."""

    value: str
    fold: str
    source: Tile
    along: str
    carry: str


@dataclass(frozen=True, slots=True)
class Search(Statement):
    """value = how many of the sorted `count` entries of `borders` are less than source."""

    value: str
    source: Tile
    borders: Tile
    count: Expr


@dataclass(frozen=True, slots=True)
class Take(Statement):
    """value = the entries of `table` along its `axis` at the positions that `at` holds."""

    value: str
    table: Tile
    axis: str
    count: Expr
    at: Tile


@dataclass(frozen=True, slots=True)
class Bound:
    """A loop bound: a size expression, in which an `Index` stands for the origin of its tile, or
    an entry of an integer tensor at a position given as sum(coefficient * origin) + offset."""

    size: Expr | None = None
    tensor: str = ""
    position: Slice | None = None


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """The body for each tile of an index, in order. backwards: from the last to the first, of tiles
    of one."""

    index: str
    tile: int
    low: Bound
    high: Bound
    body: tuple[Statement, ...]
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class GridAxis:
    """An index whose tiles run side by side. size: of the index."""

    index: str
    tile: int
    size: Expr


@dataclass(frozen=True, slots=True)
class Band:
    """An order of the grid's tiles: `size` tiles of `index` side by side are walked through
    together along all of `over`, before the next `size`."""

    index: str
    over: str
    size: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """Steps: launches side by side that have the same one run in order, once for each value of an
    index, which they are given. size: of the index.  of: the first tensor of the recurrence.
    backwards: from the last value to the first."""

    index: str
    size: Expr
    of: str
    backwards: bool = False

    def steps(self, sizes: Mapping[str, int]) -> range:
        """The values of the index in the order in which they are run through."""
        forwards = range(value(self.size, sizes))
        return forwards[::-1] if self.backwards else forwards


@dataclass(frozen=True, slots=True)
class Parameter:
    """A global tensor of a launch. role: input, output or workspace."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    role: str


@dataclass(frozen=True, slots=True)
class Launch(Keeping):
    """One program over one grid. once: statements that no grid index enters, done first.

    tiles: of every index that is cut, its tile.  whole: of every other index, its size.
    lanes: how many work on one program, 0: as many as the backend likes.  band: the order of the
    grid's tiles where it is not that of the axes.  resident: how many programs a tile processor
    keeps, each of which walks through several tiles; 0: a program for each tile.  specialized:
    whether it is compiled for each set of sizes anew, which are constants in it.  repeat: the
    steps in which it runs; its index has a tile of one, whose origin is the step.
    """

    name: str
    parameters: tuple[Parameter, ...]
    sizes: tuple[str, ...]
    grid: tuple[GridAxis, ...]
    values: tuple[Value, ...]
    once: tuple[Statement, ...]
    body: tuple[Statement, ...]
    tiles: tuple[tuple[str, int], ...]
    whole: tuple[tuple[str, Expr], ...]
    lanes: int = 0
    band: Band | None = None
    resident: int = 0
    specialized: bool = False
    repeat: Repeat | None = None

    def value(self, name: str) -> Value:
        """The value of a name; KeyError where there is none."""
        for v in self.values:
            if v.name == name:
                return v
        raise KeyError(name)

    def times(self, sizes: Mapping[str, int]) -> int:
        """How often it is launched."""
        return len(self.repeat.steps(sizes)) if self.repeat else 1

    def statements(self) -> Iterator[Statement]:
        """Every statement, loops before their bodies."""
        return iter(self._statements())

    @kept
    def _statements(self) -> tuple[Statement, ...]:
        return (*_walk(self.once), *_walk(self.body))


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A candidate, lowered. sizes: those it was tuned for; it computes any others too.

    formulation: the equations that are computed, equal to the spec's.
    """

    spec: Spec
    formulation: Spec
    schedule: Schedule
    machine: str
    sizes: tuple[tuple[str, int], ...]
    launches: tuple[Launch, ...]

    def groups(self) -> Iterator[tuple[Repeat | None, tuple[Launch, ...]]]:
        """The launches in order, those of the same steps together."""
        for repeat, launches in groupby(self.launches, key=lambda one: one.repeat):
            yield repeat, tuple(launches)

    @property
    def unordered(self) -> bool:
        """Whether floats are folded into memory in any order, so that bits vary from run to run."""
        return any(
            isinstance(s, Store) and s.fold and p.name == s.tensor and p.dtype in FLOATS
            for launch in self.launches
            for s in launch.statements()
            for p in launch.parameters
        )


def _walk(block: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in block:
        yield statement
        if isinstance(statement, Loop):
            yield from _walk(statement.body)
