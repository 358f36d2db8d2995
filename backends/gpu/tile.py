"""Tile programs: what each thread block does, as values that backends print in any GPU language.

    LoopNest -> TileProgram: masks, peeled and flattened loops, late loads, factors, grid order

Scalars (sizes, origins, bounds) are expressions of `ir.spec` whose leaves may be a `Name`; an `Index` in them is the
origin of its tile. Tensors are the expressions below. No node is a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

from ir.nest.nest import Epilogue
from ir.spec import Equation, Expr, Number


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A variable, an argument or a constant; its sort determines its identifier in a language."""

    sort: str  # one of SORTS
    stem: str = ""  # the value, tensor or index after which it is named
    dim: int = -1  # of the tensor, for sort "dim"
    copy: int = 0  # distinguishes names with one stem


# Only in languages with thread programs: the group of a thread, equal shares of a loop.
OF_THREADS = ("consumer", "iterations", "block", "share", "begin", "end", "tile_begin", "peer")
SORTS = (
    *("value", "part", "dim", "factor"),  # tensors: of the nest, temporaries
    *("origin", "positions", "mask", "step", "low", "high", "tiles"),  # of an index
    *("pointer", "descriptor"),  # arguments, of a tensor
    *("width", "even", "steps", "bulk"),  # constants: of indices, of searches, of bulk copies
    *("tile", "within", "group_start", "group_size", "in_group"),  # of the grid
    *OF_THREADS,
)
CONSTANTS = ("width", "even", "steps", "bulk")
CLUSTER = "cluster"  # the sort of a constant that only languages with clusters have


# -- tensors ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread(Expr):
    """A tensor with axes of one element inserted."""

    value: Expr
    axes: tuple[bool, ...]  # of the result: False for an inserted axis


@dataclass(frozen=True, slots=True)
class Permuted(Expr):
    """A tensor with permuted axes."""

    value: Expr
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reshaped(Expr):
    """A reshaped tensor."""

    value: Expr
    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Broadcast(Expr):
    """A tensor repeated along axes that it lacks."""

    value: Expr
    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Full(Expr):
    """A tensor with one value everywhere."""

    value: Expr
    shape: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Converted(Expr):
    """A value in another dtype."""

    value: Expr
    dtype: str
    scalar: bool = False  # whether it has no axes


@dataclass(frozen=True, slots=True)
class Compute(Expr):
    """A pointwise function of operands in one dtype."""

    function: str
    args: tuple[Expr, ...]
    floats: bool = False  # whether the operands are floats


@dataclass(frozen=True, slots=True)
class Power(Expr):
    """exp(value * factor - less), computed as a power of two."""

    value: Expr
    less: Expr
    factor: Expr | None = None
    apart: bool = False  # whether the difference is taken before the scale, which avoids overflow


@dataclass(frozen=True, slots=True)
class Masked(Expr):
    """value where all of the mask holds, else a number."""

    mask: tuple[Expr, ...]
    value: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Reduced(Expr):
    """The reduction of a tensor along an axis."""

    reduction: str
    value: Expr
    axis: int
    nan: bool  # whether NaNs propagate


@dataclass(frozen=True, slots=True)
class Scanned(Expr):
    """The scan of a tensor along an axis."""

    reduction: str
    value: Expr
    axis: int


@dataclass(frozen=True, slots=True)
class Joined(Expr):
    """The combination of two partial results of a reduction."""

    reduction: str
    onto: Expr
    value: Expr
    nan: bool


@dataclass(frozen=True, slots=True)
class Truth(Expr):
    """Whether a number is not 0."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Scaled(Expr):
    """A reduction times the factor that was hoisted out of it."""

    value: Expr
    factor: Expr


@dataclass(frozen=True, slots=True)
class Product(Expr):
    """A matmul of two tensors with axes (batch,) m, k and (batch,) k, n, optionally accumulated onto a third."""

    a: Expr
    b: Expr
    onto: Expr | None
    dtype: str  # of the operands
    # Block scales of a and b along K, with axes (batch,) m, block and (batch,) block, n.
    scales: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked(Expr):
    """The number of entries among the first `count` of a sorted tensor that are less than each key."""

    keys: Expr
    table: Expr
    count: Expr
    steps: Expr


@dataclass(frozen=True, slots=True)
class Check(Expr):
    """A condition on positions: at least 0, less than `below`, or equal to `equal`."""

    at: Expr
    below: Expr | None = None
    equal: Expr | None = None


@dataclass(frozen=True, slots=True)
class Term(Expr):
    """A summand of an index: a position times the sizes of inner dimensions."""

    value: Expr
    stride: tuple[Expr, ...] = ()
    wide: bool = False  # whether it is a 64-bit number


@dataclass(frozen=True, slots=True)
class Place(Expr):
    """Elements of a global tensor: their index, an affine sum, and a mask."""

    tensor: Expr
    terms: tuple[Expr, ...]
    mask: tuple[Expr, ...] = ()  # a conjunction; empty: no mask


@dataclass(frozen=True, slots=True)
class Entry(Expr):
    """The value at a place."""

    place: Expr
    other: Expr | None = None  # where the mask does not hold


# -- counts, for the launcher and the grid --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tiles(Expr):
    """The number of tiles that cover a size: the quotient, rounded up."""

    size: Expr
    tile: int


@dataclass(frozen=True, slots=True)
class Outer(Expr):
    """The number of a group of tiles: number // group."""

    number: Expr
    group: Expr


@dataclass(frozen=True, slots=True)
class FromEnd(Expr):
    """A number counted from the end."""

    count: Expr
    number: Expr


@dataclass(frozen=True, slots=True)
class BlockWidth(Expr):
    """The width of an untiled index: the power of two that holds its size."""

    size: Expr
    least: int


@dataclass(frozen=True, slots=True)
class Even(Expr):
    """Whether a size is a multiple of a width, or equal to it."""

    size: Expr
    width: Expr


@dataclass(frozen=True, slots=True)
class Bits(Expr):
    """The number of bits of a number."""

    number: Expr


@dataclass(frozen=True, slots=True)
class Describable(Expr):
    """Whether the TMA can take a tensor in boxes."""

    row: Expr | None  # elements of a row; None: there is one row
    aligned: int  # what they have to be a multiple of
    widths: tuple[Expr, ...]  # of the box, those that only the launcher knows
    most: int  # the most that each of them may be


# -- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Statement:
    """One step of a thread block."""


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """name = value."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Positions(Statement):
    """The positions of an index's tile."""

    name: Name
    origin: Name | None  # its start; None: 0
    width: Expr


@dataclass(frozen=True, slots=True)
class Bounds(Statement):
    """Which positions of an index's tile are in bounds."""

    name: Name
    positions: Name
    end: Expr
    even: Name | None  # the constant that tells whether all are


@dataclass(frozen=True, slots=True)
class StepOrigin(Statement):
    """The origin of one of several loops that are flattened into one."""

    name: Name
    step: Name  # of all of them
    within: Expr | None  # steps of the inner loops; None: there are none
    count: Expr | None  # of its own steps; None: it is the outermost loop
    tile: int


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """name = the value at a place."""

    name: Name
    place: Place
    other: Number  # where the mask does not hold
    cache: str = ""  # a cache hint, of `ir.nest.nest.HINTS`


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """Stores a value at a place."""

    place: Place
    value: Expr
    reduction: str = ""  # of an atomic update; empty: a plain store
    cache: str = ""  # as in `Load`
    epilogue: Epilogue | None = None  # how the tile leaves the block, where decided


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a tensor that the TMA moves."""

    descriptor: Name
    axes: tuple[str, ...]  # the index of each dimension; empty: a single element
    at: tuple[Expr, ...]  # its start
    shape: tuple[Expr, ...]
    held: tuple[Expr, ...]  # the shape in which a thread block holds it


@dataclass(frozen=True, slots=True)
class BoxLoad(Statement):
    """name = a box, by TMA."""

    name: Name
    box: Box


@dataclass(frozen=True, slots=True)
class BoxStore(Statement):
    """A box = value, by TMA."""

    box: Box
    value: Expr


@dataclass(frozen=True, slots=True)
class Guard(Statement):
    """Executes `body` where a condition holds, else `others`."""

    condition: Expr
    body: tuple[Statement, ...]
    others: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstProgram(Expr):
    """Whether this is the first thread block of the grid."""


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """Executes the body for each step from low to high."""

    name: Name
    low: Expr
    high: Expr
    tile: int
    body: tuple[Statement, ...]
    stages: int = 0  # stages of its loads; 0: undecided
    unrolled: bool = False
    unroll: int = 0  # unroll factor for the compiler; 0: it chooses
    certain: bool = False  # whether it has an iteration at all sizes


# -- launches -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The tensor map of a tensor for the TMA, where the launcher can encode it."""

    name: Name
    flag: Name  # the constant that tells whether it can
    tensor: str
    sizes: tuple[Expr, ...]
    strides: tuple[tuple[Expr, ...], ...]
    box: tuple[Expr, ...]
    steps: tuple[int, ...]  # strides of the box along each dimension
    condition: Expr


@dataclass(frozen=True, slots=True)
class Variable:
    """A tensor of the nest that a thread block holds; late loads are not among them."""

    name: Name
    dtype: str
    axes: tuple[str, ...]  # the index of each axis


@dataclass(frozen=True, slots=True)
class Shares:
    """Equal shares of all iterations of a loop over all tiles, one for each thread block (stream-K). A block processes
    the tiles of its share in reverse."""

    iterations: tuple[Expr, ...]  # their number, a product
    # A counter in memory, 0 at first, that numbers the blocks in the order in which they start
    counter: Place
    before: tuple[Statement, ...]  # the statements that determine the tiles of a share
    first: Expr  # tile
    last: Expr


@dataclass(frozen=True, slots=True)
class Launch:
    """A grid of thread blocks."""

    name: str
    equations: tuple[Equation, ...]  # that it computes
    tensors: tuple[str, ...]
    descriptors: tuple[Descriptor, ...]
    sizes: tuple[str, ...]  # that it reads
    specialized: bool  # whether sizes are compile-time constants
    step: Name | None  # of a recurrence, the argument with its step
    attributes: tuple[tuple[str, float | int | bool], ...]  # constants of the spec
    exponentials: bool  # whether exponentials are computed as powers of two
    constants: tuple[tuple[Name, Expr], ...]  # with the expressions that the launcher computes
    grid: tuple[Statement, ...]  # statements that compute the origins from the tile number
    tiles: tuple[Expr, ...]  # number of tiles, a product
    resident: int  # persistent blocks; 0: one block for each tile
    once: tuple[Statement, ...]  # before the first tile
    body: tuple[Statement, ...]
    stages: int
    warps: int
    registers: int  # limit per thread; 0: the compiler chooses
    # The constant with the cluster size, its value where the grid has whole clusters, and the number of tiles that
    # clusters divide; None: there are no clusters.
    cluster: tuple[Name, int, Expr] | None
    variables: tuple[Variable, ...]
    widths: tuple[tuple[str, Expr], ...]  # elements along each index that has an axis
    shares: Shares | None = None  # stream-K shares; None: a block has whole tiles
    steps: tuple[Name, Expr] | None = None  # a counter and its end, where `body` is for each step


def expressions(*nodes: Any) -> Iterator[Expr]:
    """Every expression in statements, launches and tuples of them."""
    for node in nodes:
        if isinstance(node, Expr):
            yield from node.walk()
        elif isinstance(node, tuple):
            yield from expressions(*node)
        elif names := _fields(type(node)):
            yield from expressions(*(getattr(node, name) for name in names))


@cache
def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; empty for other types."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


def statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, outer ones first."""
    for s in block:
        yield s
        yield from statements((*getattr(s, "body", ()), *getattr(s, "others", ())))
