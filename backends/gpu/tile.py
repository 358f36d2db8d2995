"""A tile program: what each thread block does, as values that any GPU language can spell.

    LoopNest -> TileProgram: masks, peeled and flattened loops, late loads, factors, grid order

Scalars (sizes, origins, bounds) are expressions of `ir.spec` whose leaves may be a `Name`; an `Index`
in them is the origin of its tile. Tensors are the expressions below. No node is a text.
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
    """A variable, an argument or a constant; a language spells it after its sort."""

    sort: str  # one of SORTS
    stem: str = ""  # the value, tensor or index that it is named for
    dim: int = -1  # of the tensor, for sort "dim"
    copy: int = 0  # tells names of one stem apart; 0: there is one


# Of languages that spell thread programs: the group of a thread, equal shares of a loop.
OF_THREADS = ("consumer", "iterations", "block", "share", "begin", "end", "tile_begin", "peer")
SORTS = (
    *("value", "part", "dim", "factor"),  # tensors: of the nest, temporaries
    *("origin", "positions", "mask", "step", "low", "high", "tiles"),  # of an index
    *("pointer", "descriptor"),  # arguments, of a tensor
    *("width", "even", "steps", "bulk"),  # constants: of indices, of searches, of copies in bulk
    *("tile", "within", "group_start", "group_size", "in_group"),  # of the grid
    *OF_THREADS,
)
CONSTANTS = ("width", "even", "steps", "bulk")
CLUSTER = "cluster"  # the sort of a constant that only languages with clusters have


# -- tensors ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread(Expr):
    """A tensor with axes of one element put in."""

    value: Expr
    axes: tuple[bool, ...]  # of the result: False where one is put in


@dataclass(frozen=True, slots=True)
class Permuted(Expr):
    """A tensor with its axes in another order."""

    value: Expr
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reshaped(Expr):
    """A tensor in another shape."""

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
    floats: bool = False  # whether the operands are


@dataclass(frozen=True, slots=True)
class Power(Expr):
    """e to the power of value * factor - less, as a power of two."""

    value: Expr
    less: Expr
    factor: Expr | None = None
    apart: bool = False  # whether the difference is taken before the scale: no product overflows


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
    nan: bool  # whether NaN in it must give NaN


@dataclass(frozen=True, slots=True)
class Scanned(Expr):
    """The running reduction of a tensor along an axis."""

    reduction: str
    value: Expr
    axis: int


@dataclass(frozen=True, slots=True)
class Joined(Expr):
    """Two partial results of a reduction as one."""

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
    """A matmul of two tensors with axes (batch,) m, k and (batch,) k, n, added onto a third."""

    a: Expr
    b: Expr
    onto: Expr | None
    dtype: str  # of the operands
    # Of a and b, of an element for each block along K: axes (batch,) m, block and (batch,) block, n.
    scales: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked(Expr):
    """How many of the first `count` entries of a sorted tensor are less than each key."""

    keys: Expr
    table: Expr
    count: Expr
    steps: Expr


@dataclass(frozen=True, slots=True)
class Check(Expr):
    """A condition on positions: at least 0, or less than `below`, or equal to `equal`."""

    at: Expr
    below: Expr | None = None
    equal: Expr | None = None


@dataclass(frozen=True, slots=True)
class Term(Expr):
    """A summand of an index: a position times the sizes of the dimensions inside it."""

    value: Expr
    stride: tuple[Expr, ...] = ()
    wide: bool = False  # whether it is a number of 64 bits


@dataclass(frozen=True, slots=True)
class Place(Expr):
    """Elements of a global tensor: their index, an affine sum, and which of them are there."""

    tensor: Expr
    terms: tuple[Expr, ...]
    mask: tuple[Expr, ...] = ()  # a conjunction; empty: all are there


@dataclass(frozen=True, slots=True)
class Entry(Expr):
    """What lies at a place."""

    place: Expr
    other: Expr | None = None  # where the mask does not hold


# -- counts, for the launcher and the grid --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tiles(Expr):
    """How many tiles cover a size: the quotient, rounded up."""

    size: Expr
    tile: int


@dataclass(frozen=True, slots=True)
class Outer(Expr):
    """The number of a group of tiles in parallel."""

    number: Expr
    group: Expr


@dataclass(frozen=True, slots=True)
class FromEnd(Expr):
    """A number counted from the last one."""

    count: Expr
    number: Expr


@dataclass(frozen=True, slots=True)
class BlockWidth(Expr):
    """The width of an untiled index: the power of two that holds its size."""

    size: Expr
    least: int


@dataclass(frozen=True, slots=True)
class Even(Expr):
    """Whether a size is a whole number of blocks, or just as wide as the one."""

    size: Expr
    width: Expr


@dataclass(frozen=True, slots=True)
class Bits(Expr):
    """How many bits a number has."""

    number: Expr


@dataclass(frozen=True, slots=True)
class Describable(Expr):
    """Whether TMA can take a tensor in boxes."""

    row: Expr | None  # elements of a row, None: there is one row
    aligned: int  # what they are a multiple of
    widths: tuple[Expr, ...]  # of the box, those that only the launcher knows
    most: int  # that each of them may be


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
    origin: Name | None  # where it starts, None: at 0
    width: Expr


@dataclass(frozen=True, slots=True)
class Bounds(Statement):
    """Which positions of an index's tile are in bounds."""

    name: Name
    positions: Name
    end: Expr
    even: Name | None  # the constant that tells that all are


@dataclass(frozen=True, slots=True)
class StepOrigin(Statement):
    """The origin of one of several loops that are flattened to one."""

    name: Name
    step: Name  # of all of them
    within: Expr | None  # steps of the loops inside it, None: there is none
    count: Expr | None  # of its own steps, None: it is the outermost
    tile: int


@dataclass(frozen=True, slots=True)
class Load(Statement):
    """name = what lies at a place."""

    name: Name
    place: Place
    other: Number  # where the mask does not hold
    cache: str = ""  # a hint to the caches, of `ir.nest.nest.HINTS`


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """What lies at a place = value."""

    place: Place
    value: Expr
    reduction: str = ""  # joined with what is there, in one step
    cache: str = ""  # as in `Load`
    epilogue: Epilogue | None = None  # how the tile leaves the block, where it is decided


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a tensor that TMA moves."""

    descriptor: Name
    axes: tuple[str, ...]  # the index of each dimension; empty: one element of it
    at: tuple[Expr, ...]  # where it starts
    shape: tuple[Expr, ...]
    held: tuple[Expr, ...]  # the shape in which a thread block holds it


@dataclass(frozen=True, slots=True)
class BoxLoad(Statement):
    """name = a box."""

    name: Name
    box: Box


@dataclass(frozen=True, slots=True)
class BoxStore(Statement):
    """A box = value."""

    box: Box
    value: Expr


@dataclass(frozen=True, slots=True)
class Guard(Statement):
    """The body where a condition holds, else the others."""

    condition: Expr
    body: tuple[Statement, ...]
    others: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstProgram(Expr):
    """Whether this is the first thread block of the grid."""


@dataclass(frozen=True, slots=True)
class Loop(Statement):
    """The body for each step from low to high."""

    name: Name
    low: Expr
    high: Expr
    tile: int
    body: tuple[Statement, ...]
    stages: int = 0  # how many tiles of its loads are in flight; 0: not said
    unrolled: bool = False
    unroll: int = 0  # iterations that the compiler does at once, 0: it chooses
    certain: bool = False  # whether it is known to have an iteration at all sizes


# -- launches -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor as TMA is told of it, where the launcher can."""

    name: Name
    flag: Name  # the constant that tells whether it can
    tensor: str
    sizes: tuple[Expr, ...]
    strides: tuple[tuple[Expr, ...], ...]
    box: tuple[Expr, ...]
    steps: tuple[int, ...]  # how far apart positions of the box are along each dimension
    condition: Expr


@dataclass(frozen=True, slots=True)
class Variable:
    """A tensor of the nest that a thread block holds; those loaded at their use are not among them."""

    name: Name
    dtype: str
    axes: tuple[str, ...]  # the index of each axis


@dataclass(frozen=True, slots=True)
class Shares:
    """Equal shares of all iterations of a loop over all tiles, one for each thread block. A block goes
    through the tiles of its share from the last to the first."""

    iterations: tuple[Expr, ...]  # how many there are, a product
    counter: Place  # in memory, 0 at first: how many blocks have begun. It gives them their numbers
    before: tuple[Statement, ...]  # what the tiles of a share follow from
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
    specialized: bool  # whether they are constants in it
    step: Name | None  # of a recurrence, the argument that tells its step
    attributes: tuple[tuple[str, float | int | bool], ...]  # constants of the spec
    exponentials: bool  # whether powers of two stand for exponentials
    constants: tuple[tuple[Name, Expr], ...]  # with what the launcher computes
    grid: tuple[Statement, ...]  # the origins from the number of the tile
    tiles: tuple[Expr, ...]  # how many there are, a product
    resident: int  # thread blocks that walk through them; 0: one for each
    once: tuple[Statement, ...]  # before the first tile
    body: tuple[Statement, ...]
    stages: int
    warps: int
    registers: int  # the most of a thread, 0: the compiler chooses
    # The constant with the blocks of a cluster, what it is where they are whole, and the number of
    # tiles that they divide then; None: there are no clusters.
    cluster: tuple[Name, int, Expr] | None
    variables: tuple[Variable, ...]
    widths: tuple[tuple[str, Expr], ...]  # elements along each index that has an axis
    shares: Shares | None = None  # None: a block has whole tiles
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
    """The fields of a dataclass; of any other type none."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


def statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, outer ones first."""
    for s in block:
        yield s
        yield from statements((*getattr(s, "body", ()), *getattr(s, "others", ())))
