"""Typed C-like expressions as values. Operands are converted to a common dtype.

A macro in the language's template formats each node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backends.backend import BackendError
from backends.shared.places import At
from backends.shared.texts import number, scalar
from ir.functions import POINTWISE
from ir.nest.nest import Tile
from ir.nest.steps import constant_dtype, promote
from ir.nest.steps import scalar as is_scalar
from ir.spec import SHORT, Apply, Cast, Expr, Index, Number

_NARROW = ("f16", "bf16", "tf32")  # floats that are computed in f32
_WHOLE = ("b8", *SHORT, "i32", "i64")
_HELD = ("f32", *_NARROW, *_WHOLE)
_CHOOSES = ("where", "minimum", "maximum")  # they return an operand, so b8 stays b8
OPERATORS = frozenset("add sub mul div neg lt le gt ge eq ne and or xor not where".split())
TRUTH = frozenset(("and", "or", "xor", "not"))  # for b8 operands the language has other operators
IDENTITY = ("floor", "ceil", "round", "trunc")  # for integer operands


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, or an expression over sizes and attributes."""

    text: str
    single: bool = False  # whether it is an f32 literal


@dataclass(frozen=True, slots=True)
class Converted:
    """A value converted to another dtype."""

    dtype: str
    value: object


@dataclass(frozen=True, slots=True)
class Nonzero:
    """Whether a value is not 0."""

    value: object


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of the language."""

    name: str
    args: tuple[object, ...]
    of_truth: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a function of the prelude."""

    name: str
    args: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression and the dtype of its value in computations, which is never a narrow float."""

    value: object
    dtype: str


class Expressions:
    """Makes expressions.

    leaf: gives a tile's element and its storage dtype. place: gives the index within its tile;
    empty if the tile has one element.
    """

    def __init__(
        self, leaf: Callable[[Tile], tuple[object, str]], place: Callable[[str], str]
    ) -> None:
        self.leaf, self.place = leaf, place

    def assigned(self, expr: Expr, dtype: str) -> object:
        """An expression as a value of a dtype."""
        return self.converted(self.of(expr), dtype)

    def of(self, expr: Expr) -> Typed:
        """An expression with its dtype."""
        match expr:
            case _ if is_scalar(expr):
                dtype = constant_dtype(expr)
                return Typed(_constant(expr, dtype), dtype)
            case Tile():
                return _widened(*self.leaf(expr))
            case Index(name):
                at = At(origins=((name, 1),), places=((self.place(name), 1),))
                return Typed(Converted("i32", at), "i32")
            case Cast(dtype, value):
                return _widened(self.converted(self.of(value), dtype), dtype)
            case Apply():
                return self._apply(expr)
        raise BackendError("emit", f"a {type(expr).__name__} has no text")

    def converted(self, given: Typed, dtype: str) -> object:
        """A value converted to another dtype."""
        if dtype not in _HELD:
            raise BackendError("emit", f"this language has no {dtype}")
        if given.dtype == dtype:
            return given.value
        if dtype == "b8":
            return Nonzero(given.value)
        if dtype == "tf32":
            return Called("round_tf32", (given.value,))
        if dtype in _WHOLE and given.dtype not in _WHOLE:
            wide = "i64" if dtype == "i64" else "i32"  # narrower dtypes wrap
            cut = Called(f"{wide}_from", (given.value,))
            return cut if wide == dtype else Converted(dtype, cut)
        plain = given.dtype in ("f32", *_WHOLE)
        return Converted(dtype, given.value if plain else Converted("f32", given.value))

    def _apply(self, expr: Apply) -> Typed:
        name, kind = expr.function, POINTWISE[expr.function].kind
        args = [self.of(a) for a in expr.args]
        if name == "where":
            meet = self._meet(name, kind, args[1:])
            chosen = (self.converted(a, meet) for a in args[1:])
            return Typed(Operation(name, (self.converted(args[0], "b8"), *chosen)), meet)
        if name == "pow" and expr.args[1] == Number(2):
            name, args = "square", args[:1]
        meet = self._meet(name, kind, args)
        values = tuple(self.converted(a, meet) for a in args)
        result = {"compare": "b8", "test": "b8", "random": "f32"}.get(kind, meet)
        if name in IDENTITY and meet in _WHOLE:
            return Typed(values[0], meet)
        if name in OPERATORS:
            return Typed(Operation(name, values, meet == "b8" and name in TRUTH), result)
        return Typed(Called(name, values), result)

    def _meet(self, name: str, kind: str, args: list[Typed]) -> str:
        """The common dtype of the operands."""
        if kind in ("float", "test"):
            return "f32"
        if kind == "random":
            return "i64"
        dtypes = tuple(a.dtype for a in args)
        if kind == "logic" and "b8" in dtypes:
            return "b8"
        meet = promote(dtypes)
        return "i32" if meet == "b8" and kind == "arithmetic" and name not in _CHOOSES else meet


def _widened(value: object, dtype: str) -> Typed:
    """A value of any dtype, in its dtype for computations."""
    if dtype not in _NARROW:
        return Typed(value, dtype)
    return Typed(value if dtype == "tf32" else Converted("f32", value), "f32")


def _constant(expr: Expr, dtype: str) -> object:
    text = scalar(expr)
    if dtype == "f32":
        if isinstance(expr, Number) and "inf" not in text:
            return Constant(number(float(expr.value)), single=True)
        return Converted("f32", Constant(text))
    plain = isinstance(expr, Number) and dtype in ("b8", "i32")
    return Constant(text) if plain else Converted(dtype, Constant(text))
