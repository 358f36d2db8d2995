"""A spec: what a kernel computes, as pure equations in index notation.

Everything here is a frozen value. Texts become specs in `parse`, specs become texts in
`print`, and `verify` says whether one makes sense and what follows from it (`Facts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache

from ir.errors import Place
from ir.memo import Keeping, kept

EIGHT = ("f8e4m3", "f8e5m2")  # floats of 8 bits: stored and multiplied, computed with as f32
FLOATS = ("f64", "f32", "tf32", "f16", "bf16", *EIGHT)
SHORT = ("i8", "u8", "i16")  # integers that are stored, and computed with as i32
INTEGERS = ("i64", "i32", *SHORT, "b8")
DTYPES = {  # bytes
    "f64": 8,
    "f32": 4,
    "tf32": 4,
    "f16": 2,
    "bf16": 2,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "i64": 8,
    "i32": 4,
    "i16": 2,
    "i8": 1,
    "u8": 1,
    "b8": 1,
}
Operand = "Expr | float | int | bool"
INNER = ("tf32",)  # dtypes of what lies between equations only: f32 with 10 bits of fraction


@dataclass(frozen=True, slots=True)
class Expr(Keeping):
    """A node of an expression; `place` is where it was written and is not compared.

    Arithmetic, logic and order of expressions, or of one and a constant, make expressions.
    Equality does not: `==` says whether two are the same expression.
    """

    place: Place | None = field(default=None, compare=False, repr=False, kw_only=True)

    def children(self) -> Iterator[Expr]:
        """The expressions directly inside this one, in order."""
        for name in _inside(type(self)):
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
        """This node and all below it, outermost first."""
        return iter(self._nodes())

    @kept
    def _nodes(self) -> tuple[Expr, ...]:
        found: list[Expr] = []
        todo = [self]
        while todo:
            found.append(node := todo.pop())
            if _inside(type(node)):
                todo.extend(reversed(tuple(node.children())))
        return tuple(found)


def _applied(function: str, *terms: Operand) -> Expr:
    return Apply(function, tuple(t if isinstance(t, Expr) else Number(t) for t in terms))


@lru_cache
def _inside(kind: type[Expr]) -> tuple[str, ...]:
    """The fields of a sort of expression that hold others."""
    return tuple(f.name for f in fields(kind) if "Expr" in f.type or "Range" in f.type)


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A constant: int, float (`inf` included) or bool; `1`, `1.0` and `True` differ."""

    value: float | int | bool

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Size(Expr):
    """The size `name` (upper case), or an attribute (lower case, declared with a value)."""

    name: str


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """The value of the index `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Read(Expr):
    """`tensor[at...]`; `pad`, where given, is what a position outside reads as."""

    tensor: str
    at: tuple[Expr, ...]
    pad: float | None = None


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A pointwise function, arithmetic included: see `functions.POINTWISE` for the names."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """The value in another dtype: `f32(x)`."""

    dtype: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Bucketize(Expr):
    """How many of the sorted entries of the 1-D tensor `borders` are less than `value`."""

    value: Expr
    borders: str


@dataclass(frozen=True, slots=True)
class Range(Expr):
    """An index and the half-open interval it runs over.

    A static range starts at 0 and ends at a size expression; a jagged one runs between two
    reads of an integer tensor. One whose bounds have indices (only decisions make it) takes a
    part of the range that the index has elsewhere.
    """

    index: str
    low: Expr
    high: Expr

    @property
    def jagged(self) -> bool:
        return any(isinstance(n, Read) for e in (self.low, self.high) for n in e.walk())

    @property
    def partial(self) -> bool:
        """Whether it is a part of its index's own range."""
        nodes = [n for e in (self.low, self.high) for n in e.walk()]
        return not self.jagged and any(isinstance(n, Index) for n in nodes)


@dataclass(frozen=True, slots=True)
class Reduce(Expr):
    """`sum(body, i, j)`: stands alone on the right side of its equation.

    `over` names the indices; those whose range is written (`i=3`, `l=range(a, b)`) come with
    it, the others have the range that use gives them.
    """

    fold: str  # sum max min prod any all argmax argmin
    body: Expr
    over: tuple[str, ...]
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan(Expr):
    """`cumsum(body, i)`: stands alone on the right side of its equation."""

    fold: str  # sum max min prod
    body: Expr
    along: str
    reverse: bool = False
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array: dtype and sizes (expressions over sizes).

    range: of an integer input whose entries are known to lie between two sizes, the first and the
    one after the last; else empty.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    place: Place | None = field(default=None, compare=False, repr=False)
    range: tuple[Expr, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Equation(Keeping):
    """`target[indices] = value` for every value of the indices; `+=` where `accumulate`.

    `at` holds the left side's positions: plain indices, or (only with `accumulate`)
    indirect ones.  sizes: of the dimensions, where they are written (`t[i, j]: [M, 3] = value`),
    which gives the indices their ranges; else empty.
    """

    target: str
    at: tuple[Expr, ...]
    value: Expr
    accumulate: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)
    sizes: tuple[Expr, ...] = field(default=(), kw_only=True)

    @property
    @kept
    def indices(self) -> tuple[str, ...]:
        """The plain indices of the left side, in order."""
        return tuple(e.name for e in self.at if isinstance(e, Index))

    @property
    def reduced(self) -> tuple[str, ...]:
        """The indices that the right side sums (or folds) away."""
        return self.value.over if isinstance(self.value, Reduce) else ()

    @kept
    def reads(self) -> tuple[Read, ...]:
        """Every read on the right side, ranges and positions included, outermost first."""
        return tuple(n for n in self.value.walk() if isinstance(n, Read))

    @kept
    def sources(self) -> tuple[str, ...]:
        """The tensors that the right side needs, each once, in order of first use."""
        names = []
        for node in (*self.value.walk(), *(n for e in self.at for n in e.walk())):
            if isinstance(node, Read):
                names.append(node.tensor)
            elif isinstance(node, Bucketize):
                names.append(node.borders)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Spec:
    """What a kernel computes.

    inputs: tensors in the order of the call.  outputs: likewise.  attributes: compile-time
    scalars (`eps=1e-06`).  derived: sizes computed from others (`P=(H - 1) // 2 + 1`).
    """

    name: str
    doc: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    equations: tuple[Equation, ...]
    attributes: tuple[tuple[str, float | int], ...] = ()
    derived: tuple[tuple[str, Expr], ...] = ()

    def equation(self, target: str) -> Equation:
        """The equation that defines `target`; KeyError where none does."""
        for e in self.equations:
            if e.target == target:
                return e
        raise KeyError(target)


@dataclass(frozen=True, slots=True)
class Facts:
    """What follows from a verified spec.

    ranges: of every index.  tensors: every tensor, intermediates with the dtype that the
    equations give them.  sizes: the free sizes, in order of first use, that a caller fixes.
    """

    ranges: Mapping[str, Range]
    tensors: Mapping[str, Tensor]
    sizes: tuple[str, ...]
