"""A spec: what a kernel computes, as pure equations in index notation.

All values are frozen. `ir/parse` reads specs, `ir/print.py` prints them, and `ir/verify.py` checks
them and infers their facts (`Facts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TypeAlias, cast

from ir.errors import SourceRange
from ir.memo import Keeping, kept

EIGHT = ("f8e4m3", "f8e5m2")  # 8-bit floats: stored and multiplied; arithmetic on them is f32
# a power of two from 2^-127 to 2^127, or NaN: the scale of a block of numbers (OCP MX)
SCALE = "f8e8m0"
SMALL = (*EIGHT, SCALE)  # all floats of 8 bits
FLOATS = ("f64", "f32", "tf32", "f16", "bf16", *SMALL)
SHORT = ("i8", "u8", "i16")  # narrow integers: stored only; arithmetic on them is i32
INTEGERS = ("i64", "i32", *SHORT, "b8")
DTYPES = {  # bytes of each
    "f64": 8,
    "f32": 4,
    "tf32": 4,
    "f16": 2,
    "bf16": 2,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "f8e8m0": 1,
    "i64": 8,
    "i32": 4,
    "i16": 2,
    "i8": 1,
    "u8": 1,
    "b8": 1,
}
Operand: TypeAlias = "Expr | float | int | bool"
# f32 with 10 fraction bits, in memory followed by zero bits. Only intermediates have it, not inputs
# and outputs of a user's kernel.
INNER = ("tf32",)
GIVEN = (SCALE,)  # dtypes of inputs only


@dataclass(frozen=True, slots=True)
class Expr(Keeping):
    """A node of an expression.

    Operators on expressions and constants build expressions, except `==`, which compares
    expressions structurally.
    """

    # Position in the source; not compared.
    place: SourceRange | None = field(default=None, compare=False, repr=False, kw_only=True)

    def children(self) -> Iterator[Expr]:
        """The expressions directly inside this one, in order."""
        # mypy takes the `__hash__` of the instances for that of the class.
        for name in _inside(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Expr):
                    yield item

    def __add__(self, other: Operand) -> Expr:
        return _applied("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return _applied("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return _applied("sub", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return _applied("sub", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return _applied("mul", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return _applied("mul", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return _applied("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _applied("div", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return _applied("floordiv", self, other)

    def __mod__(self, other: Operand) -> Expr:
        return _applied("mod", self, other)

    def __neg__(self) -> Expr:
        return Apply("neg", (self,))

    def __and__(self, other: Operand) -> Expr:
        return _applied("and", self, other)

    def __or__(self, other: Operand) -> Expr:
        return _applied("or", self, other)

    def __invert__(self) -> Expr:
        return Apply("not", (self,))

    def __lt__(self, other: Operand) -> Expr:
        return _applied("lt", self, other)

    def __le__(self, other: Operand) -> Expr:
        return _applied("le", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return _applied("gt", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return _applied("ge", self, other)

    def walk(self) -> Iterator[Expr]:
        """This node and all nodes below it, outermost first."""
        return iter(self._nodes())

    @kept
    def _nodes(self) -> tuple[Expr, ...]:
        found: list[Expr] = []
        todo = [self]
        while todo:
            found.append(node := todo.pop())
            if _inside(type(node)):  # type: ignore[arg-type]  # as in `children`
                todo.extend(reversed(tuple(node.children())))
        return tuple(found)


def _applied(function: str, *terms: Operand) -> Expr:
    return Apply(function, tuple(t if isinstance(t, Expr) else Number(t) for t in terms))


@lru_cache
def _inside(kind: type[Expr]) -> tuple[str, ...]:
    """The fields of an expression class that hold expressions."""
    return tuple(f.name for f in fields(kind) if "Expr" in f.type or "Range" in f.type)


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A constant: int, float (`inf` included) or bool.

    `1`, `1.0` and `True` are different constants.
    """

    value: float | int | bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Size(Expr):
    """A size (upper-case name), or an attribute (lower-case name, declared with a value)."""

    name: str


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """The value of an index."""

    name: str


@dataclass(frozen=True, slots=True)
class Read(Expr):
    """`tensor[at...]`."""

    tensor: str
    at: tuple[Expr, ...]
    pad: float | None = None  # value of positions out of bounds; None: there are none


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A pointwise function, arithmetic included."""

    function: str  # a name of `functions.POINTWISE`
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A value in another dtype: `f32(x)`."""

    dtype: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Bucketize(Expr):
    """The number of entries of the sorted 1-D tensor `borders` that are less than `value`."""

    value: Expr
    borders: str


@dataclass(frozen=True, slots=True)
class Range(Expr):
    """An index and the half-open interval that it runs over.

    A static range runs from 0 to a size expression. A jagged one runs between two reads of an
    integer tensor. A partial one, whose bounds contain indices, is a part of its index's own range.
    """

    index: str
    low: Expr
    high: Expr

    @property
    @kept
    def jagged(self) -> bool:
        """Whether its bounds depend on data."""
        return any(isinstance(n, Read) for e in (self.low, self.high) for n in e.walk())

    @property
    @kept
    def partial(self) -> bool:
        """Whether it is a part of its index's own range."""
        nodes = [n for e in (self.low, self.high) for n in e.walk()]
        return not self.jagged and any(isinstance(n, Index) for n in nodes)


@dataclass(frozen=True, slots=True)
class Reduce(Expr):
    """`sum(body, i, j)`: a reduction, the whole right side of its equation."""

    reduction: str  # sum max min prod any all argmax argmin
    body: Expr
    over: tuple[str, ...]  # the reduction indices
    # The ranges that are written (`i=3`, `l=range(a, b)`); the others follow from use.
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan(Expr):
    """`cumsum(body, i)`: a scan, the whole right side of its equation."""

    reduction: str  # sum max min prod
    body: Expr
    along: str
    reverse: bool = False
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """The place of an output in a larger tensor: from position `first` on, of `whole` along
    `axis`."""

    axis: int
    first: int
    whole: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]  # expressions over sizes
    place: SourceRange | None = field(default=None, compare=False, repr=False)
    # Bounds of an integer input's entries, first and end; empty if none are declared.
    range: tuple[Expr, ...] = field(default=(), kw_only=True)
    # The place of an output in a larger tensor that a kernel stores it into; the rest of that
    # tensor is unchanged.
    part: Part | None = field(default=None, kw_only=True)

    @property
    def memory(self) -> tuple[Expr, ...]:
        """The shape in memory: its own, or that of the larger tensor."""
        if self.part is None:
            return self.shape
        return _with(self.shape, self.part.axis, Number(self.part.whole))

    @property
    def window(self) -> tuple[slice, ...]:
        """Its slice of an array of the shape `memory`."""
        if self.part is None:
            return (slice(None),) * len(self.shape)
        axis, first = self.part.axis, self.part.first
        size = cast(Number, self.shape[axis]).value
        return (slice(None),) * axis + (slice(first, first + int(size)),)


def _with(shape: tuple[Expr, ...], axis: int, size: Expr) -> tuple[Expr, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


@dataclass(frozen=True, slots=True)
class Equation(Keeping):
    """`target[at] = value` for all values of the indices; `+=` if `accumulate`."""

    target: str
    # Positions: plain indices; in a scatter (`accumulate`) also data-dependent ones.
    at: tuple[Expr, ...]
    value: Expr
    accumulate: bool = False
    place: SourceRange | None = field(default=None, compare=False, repr=False)
    # Dimensions if they are written (`t[i, j]: [M, 3] = value`), which gives the indices their
    # ranges; else empty.
    sizes: tuple[Expr, ...] = field(default=(), kw_only=True)

    @property
    @kept
    def indices(self) -> tuple[str, ...]:
        """The plain indices of the left side, in order."""
        return tuple(e.name for e in self.at if isinstance(e, Index))

    @property
    def reduce(self) -> Reduce:
        """The right side of an equation that reduces."""
        return cast(Reduce, self.value)

    @property
    def scan(self) -> Scan:
        """The right side of an equation that scans."""
        return cast(Scan, self.value)

    @property
    def reduced(self) -> tuple[str, ...]:
        """The reduction indices of the right side."""
        return self.value.over if isinstance(self.value, Reduce) else ()

    @kept
    def reads(self) -> tuple[Read, ...]:
        """Every read on the right side, ranges and positions included, outermost first."""
        return tuple(n for n in self.value.walk() if isinstance(n, Read))

    @kept
    def sources(self) -> tuple[str, ...]:
        """The tensors that the right side, or a position on the left, reads: each once, in order of
        first use."""
        names = []
        for node in (*self.value.walk(), *(n for e in self.at for n in e.walk())):
            if isinstance(node, Read):
                names.append(node.tensor)
            elif isinstance(node, Bucketize):
                names.append(node.borders)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Spec:
    """What a kernel computes."""

    name: str
    doc: str
    inputs: tuple[Tensor, ...]  # in the order of the call
    outputs: tuple[Tensor, ...]  # in the order in which they are returned
    equations: tuple[Equation, ...]
    attributes: tuple[tuple[str, float | int], ...] = ()  # compile-time scalars (`eps=1e-06`)
    derived: tuple[tuple[str, Expr], ...] = ()  # sizes computed from others (`P=(H - 1) // 2 + 1`)
    # f32 sums whose operands the caller allows to be rounded to tf32; results are judged
    # accordingly. Not part of the text.
    rounded: tuple[str, ...] = ()

    def equation(self, target: str) -> Equation:
        """The equation that defines `target`. Raises KeyError if there is none."""
        for e in self.equations:
            if e.target == target:
                return e
        raise KeyError(target)


@dataclass(frozen=True, slots=True)
class Facts(Keeping):
    """Facts inferred from a verified spec."""

    ranges: Mapping[str, Range]  # of every index
    tensors: Mapping[str, Tensor]  # every tensor, intermediates with their inferred dtypes
    sizes: tuple[str, ...]  # the free sizes that a caller gives, in order of first use
