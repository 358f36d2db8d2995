"""Pointwise expressions over tiles, with explicit dtypes, axes and temporaries."""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.backend import BackendError
from backends.gpu.blocks import Blocks
from backends.gpu.shapes import spread
from backends.gpu.tile import Compute, Converted, Name, Power
from backends.gpu.values import ZERO
from ir.dtypes import is_long
from ir.functions import POINTWISE
from ir.nest.nest import Tile
from ir.nest.steps import counts, promote
from ir.spec import FLOATS, SHORT, Apply, Cast, Expr, Index, Number, Size

# Equivalents for operands that are not negative
_WHOLE = {"floordiv": "quotient", "mod": "remainder"}
_ROUNDING = ("floor", "ceil", "round", "trunc")
_COMPARED = {"lt": op.lt, "le": op.le, "gt": op.gt, "ge": op.ge, "eq": op.eq, "ne": op.ne}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression, broadcast over the requested axes."""

    value: Expr
    dtype: str
    axes: frozenset[str] = frozenset()  # those of its operands


class Expressions:
    """Builds the expressions of one launch."""

    def __init__(
        self,
        blocks: Blocks,
        tile: Callable[[Tile], tuple[Name, tuple[str, ...], str]],
        temporary: Callable[[Expr], Name],
        factors: Mapping[str, Name],
        exact: frozenset[str] = frozenset(),
    ):
        self.blocks = blocks
        self.tile = tile  # gives the variable and the axes of a tile, and may load it first
        self.temporary = temporary  # gives a name to an expression that is read twice
        self.factors = factors  # of values whose factor is hoisted, its variable
        self.exact = exact  # values whose differences are taken before they are scaled

    def typed(self, expr: Expr, over: tuple[str, ...]) -> Typed:
        """An expression broadcast over axes."""
        match expr:
            case Number(value):
                return Typed(expr, _constant(value))
            case Size(name):
                return Typed(expr, "f32" if name.islower() else "i32")
            case Index(name):
                return self._index(name, over)
            case Tile():
                variable, axes, dtype = self.tile(expr)
                return Typed(spread(variable, axes, over), dtype, frozenset(axes))
            case Cast(dtype, value):
                return self.cast(self.typed(value, over), dtype)
            case Apply():
                return self._apply(expr, over)
        raise BackendError("emit", f"a {type(expr).__name__} has no spelling here")

    def cast(self, found: Typed, dtype: str) -> Typed:
        """An expression in another dtype."""
        if found.dtype == dtype:
            return found
        if dtype == "tf32":
            rounded = Compute("round_tf32", (self.cast(found, "f32").value,), True)
            return Typed(rounded, dtype, found.axes)
        if dtype in SHORT and found.dtype in FLOATS:
            found = self.cast(found, "i32")  # saturates at the ends of i32, then wraps
        if found.dtype == "tf32" and dtype == "f32":
            return Typed(found.value, dtype, found.axes)
        if dtype == "b8" and found.axes:
            return Typed(Compute("ne", (found.value, ZERO)), dtype, found.axes)
        return Typed(Converted(found.value, dtype, not found.axes), dtype, found.axes)

    def _index(self, name: str, over: tuple[str, ...]) -> Typed:
        if self.blocks[name].zero:
            return Typed(ZERO, "i32")
        if self.blocks[name].scalar:
            return Typed(Name("origin", name), "i32")
        at = spread(Name("positions", name), (name,), over)
        return Typed(at, "i32", frozenset({name}))

    def _apply(self, expr: Apply, over: tuple[str, ...]) -> Typed:
        function, arguments = expr.function, expr.args
        if function == "exp" and (found := self._power(arguments[0], over)):
            return found
        if function == "pow" and arguments[1] in (Number(2), Number(2.0)):
            function, arguments = "square", arguments[:1]
        if function in _WHOLE and all(counts(a) for a in arguments):
            function = _WHOLE[function]
        args = [self.typed(a, over) for a in arguments]
        axes = frozenset(a for t in args for a in t.axes)
        condition, data = (args[:1], args[1:]) if function == "where" else ([], args)
        dtype = promote(tuple(t.dtype for t in data))
        kind = POINTWISE[expr.function].kind
        if kind == "float" and dtype not in FLOATS:
            dtype = "f32"
        if kind == "random":
            return Typed(self._compute(function, args, "f32"), "f32", axes)
        if function in _ROUNDING and dtype not in FLOATS:
            return data[0]
        if function == "pow" and dtype not in FLOATS:
            function = "powi"
        meeting = zip(data, arguments[-len(data) :], strict=True)
        met = [*condition, *(self._meeting(t, n, dtype) for t, n in meeting)]
        rules = self.blocks.rules
        if function in rules.typed or dtype == "f64" and function in rules.typed_but_f32:
            met = [t if t.axes else Typed(Converted(t.value, dtype, True), dtype) for t in met]
        kept = "b8" if kind in ("compare", "test") else dtype
        if (known := _known(function, [t.value for t in met])) is not None:
            return Typed(Number(known), "b8")
        return Typed(self._compute(function, met, dtype), kept, axes)

    def _power(self, exponent: Expr, over: tuple[str, ...]) -> Typed | None:
        """exp(a - b) as a power of two, where b is constant along an axis of a, so that its product
        with log2(e) is computed once for many elements, unless that may overflow. None for other
        exponents."""
        match exponent:
            case Apply("sub", (Tile() as a, Tile() as b)):
                left, right = self.typed(a, over), self.typed(b, over)
                if {left.dtype, right.dtype} != {"f32"} or not right.axes < left.axes:
                    return None
                apart = a.value in self.exact
                power = Power(left.value, right.value, self.factors.get(a.value), apart)
                return Typed(power, "f32", left.axes)
        return None

    def _meeting(self, found: Typed, expr: Expr, dtype: str) -> Typed:
        """An operand in the common dtype of the operands; constants and sizes adapt by themselves."""
        if isinstance(expr, Number | Size) or found.dtype == dtype:
            if isinstance(expr, Number) and dtype in FLOATS and found.dtype == "i32":
                return Typed(Number(float(expr.value)), dtype)
            return found
        return self.cast(found, dtype)

    def _compute(self, function: str, args: list[Typed], dtype: str) -> Compute:
        values = [a.value for a in args]
        if function in self.blocks.rules.repeated:
            values = [v if isinstance(v, Name | Size) else self.temporary(v) for v in values]
        return Compute(function, tuple(values), dtype in FLOATS)


def _constant(value: float | int | bool) -> str:
    """The dtype of a constant."""
    if isinstance(value, bool):
        return "b8"
    if isinstance(value, float):
        return "f32"
    return "i64" if is_long(value) else "i32"


def _known(function: str, args: list[Expr]) -> bool | None:
    """The value of a comparison of constants, or of a negated constant; None where it is unknown.
    Python would negate the bits of a constant: ~True == -2."""
    match function, args:
        case "not", [Number(bool(value))]:
            return not value
        case _, [Number(a), Number(b)] if function in _COMPARED:
            return _COMPARED[function](a, b)
    return None
