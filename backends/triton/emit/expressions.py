"""Expressions: pointwise arithmetic over tiles as Triton's Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.backend import BackendError
from backends.triton.emit import spelling
from backends.triton.emit.blocks import Blocks
from ir.dtypes import is_long
from ir.functions import POINTWISE
from ir.nest.nest import Tile
from ir.nest.steps import promote
from ir.spec import FLOATS, SHORT, Apply, Cast, Expr, Index, Number, Size

NARROW = ("f16", "bf16")
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "fmod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
}
_CALLS = {
    "exp": "tl.exp({})",
    "log": "tl.log({})",
    "sqrt": "tl.sqrt({})",
    "rsqrt": "tl.rsqrt({})",
    "sigmoid": "tl.sigmoid({})",
    "erf": "tl.erf({})",
    "sin": "tl.sin({})",
    "cos": "tl.cos({})",
    "abs": "tl.abs({})",
    "floor": "tl.floor({})",
    "ceil": "tl.ceil({})",
    "minimum": "tl.minimum({}, {})",
    "maximum": "tl.maximum({}, {})",
    "where": "tl.where({}, {}, {})",
    "relu": "tl.maximum({}, 0)",
    "sign": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0))",
    "tanh": "libdevice.tanh({})",
    "pow": "libdevice.pow({}, {})",
    "silu": "{0} * tl.sigmoid({0})",
    "square": "{0} * {0}",
    "gelu": "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))",
    "floordiv": "floor_divide({}, {})",
    "mod": "floor_modulo({}, {})",
    "powi": "integer_power({}, {})",
    "uniform": "uniform({}, {})",
    "exp2": "tl.exp2({})",
    "log2": "tl.log2({})",
    "isnan": "{0} != {0}",
    "isinf": 'tl.abs({}) == float("inf")',
    "isfinite": 'tl.abs({}) < float("inf")',
}
_LIBRARY = (
    *("expm1", "log10", "log1p", "erfc", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "asinh", "acosh", "atanh"),
)
_OF_LIBRARY = ("pow", "fmod", "mod", "floordiv")  # which take constants, but of f32 alone
_CALLS |= {f: f"libdevice.{f}({{}})" for f in _LIBRARY} | {"atan2": "libdevice.atan2({}, {})"}
_ON_FLOATS = {  # where floats need another spelling than integers
    "minimum": "tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)",
    "maximum": "tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)",
    "relu": "tl.maximum({}, 0.0, propagate_nan=tl.PropagateNan.ALL)",
    "sign": "tl.where({0} > 0.0, 1.0, tl.where({0} < 0.0, -1.0, 0.0))",
    "floordiv": "float_floor_divide({}, {})",
    "mod": "float_floor_modulo({}, {})",
    "fmod": "libdevice.fmod({}, {})",
    "round": "libdevice.rint({})",
    "trunc": "libdevice.trunc({})",
}
_WHOLE = {"floordiv": "quotient", "mod": "remainder"}  # where rounding down is toward zero
_ROUNDING = ("floor", "ceil", "round", "trunc")
_TWICE = ("silu", "square", "gelu", "sign", "isnan")  # what reads its argument more than once
_LOOSE = ("silu", "square", "gelu", "isnan", "isinf", "isfinite")  # what is no single call


@dataclass(frozen=True, slots=True)
class Text:
    """An expression in Triton. axes: those of its operands; it is spread over those it was
    asked for.  loose: needs brackets as an operand."""

    code: str
    dtype: str
    axes: frozenset[str] = frozenset()
    loose: bool = False

    @property
    def operand(self) -> str:
        """The code as an operand."""
        return f"({self.code})" if self.loose else self.code


def spread(code: str, axes: tuple[str, ...], over: tuple[str, ...]) -> str:
    """A tensor over `axes`, with axes of one element put in so that it lies along `over`."""
    if not axes or axes == over:
        return code
    ordered = tuple(a for a in over if a in axes)
    if ordered != axes:
        code = permuted(code, axes, ordered)
    if ordered == over:
        return code
    return f"{code}[{', '.join(':' if a in ordered else 'None' for a in over)}]"


def permuted(code: str, axes: tuple[str, ...], into: tuple[str, ...]) -> str:
    """A tensor over `axes` in another order of them."""
    if axes == into:
        return code
    if len(axes) == 2:
        return f"tl.trans({code})"
    return f"tl.permute({code}, {', '.join(str(axes.index(a)) for a in into)})"


class Expressions:
    """Writes expressions for one launch.

    tile: gives the variable and the axes of a tile (it may load it first).  temporary: gives a
    name to an expression that is read twice.  factors: of values whose factor waits, its variable.
    """

    def __init__(
        self,
        blocks: Blocks,
        tile: Callable[[Tile], tuple[str, tuple[str, ...], str]],
        temporary: Callable[[str], str],
        factors: Mapping[str, str],
    ):
        self.factors = factors
        self.blocks = blocks
        self.tile = tile
        self.temporary = temporary

    def text(self, expr: Expr, over: tuple[str, ...]) -> Text:
        """An expression spread over axes."""
        match expr:
            case Number(value):
                return Text(spelling.number(value), _constant(value), loose=_negative(value))
            case Size(name):
                return Text(name, "f32" if name.islower() else "i32")
            case Index(name):
                return self._index(name, over)
            case Tile():
                name, axes, dtype = self.tile(expr)
                return Text(spread(name, axes, over), dtype, frozenset(axes))
            case Cast(dtype, value):
                return self.cast(self.text(value, over), dtype)
            case Apply():
                return self._apply(expr, over)
        raise BackendError("emit", f"a {type(expr).__name__} has no spelling here")

    def cast(self, text: Text, dtype: str) -> Text:
        """An expression in another dtype."""
        if text.dtype == dtype:
            return text
        if dtype == "tf32":
            return Text(f"round_tf32({self.cast(text, 'f32').code})", dtype, text.axes)
        if dtype in SHORT and text.dtype in FLOATS:
            text = self.cast(text, "i32")  # beyond i32 its ends, then it wraps
        if text.dtype == "tf32" and dtype == "f32":
            return Text(text.code, dtype, text.axes, text.loose)
        if not text.axes:
            return Text(f"tl.cast({text.code}, {spelling.DTYPES[dtype]})", dtype, text.axes)
        if dtype == "b8":
            return Text(f"{text.operand} != 0", dtype, text.axes, loose=True)
        return Text(f"{text.operand}.to({spelling.DTYPES[dtype]})", dtype, text.axes)

    def _index(self, name: str, over: tuple[str, ...]) -> Text:
        if self.blocks[name].zero:
            return Text("0", "i32")
        if self.blocks[name].scalar:
            return Text(spelling.origin(name), "i32")
        return Text(spread(spelling.offsets(name), (name,), over), "i32", frozenset({name}))

    def _apply(self, expr: Apply, over: tuple[str, ...]) -> Text:
        function, arguments = expr.function, expr.args
        if function == "exp" and (found := self._power(arguments[0], over)):
            return found
        if function == "pow" and arguments[1] in (Number(2), Number(2.0)):
            function, arguments = "square", arguments[:1]
        if function in _WHOLE and all(_counts(a) for a in arguments):
            function = _WHOLE[function]
        args = [self.text(a, over) for a in arguments]
        axes = frozenset(a for t in args for a in t.axes)
        condition, data = (args[:1], args[1:]) if function == "where" else ([], args)
        dtype = promote(tuple(t.dtype for t in data))
        kind = POINTWISE[expr.function].kind
        if kind == "float" and dtype not in FLOATS:
            dtype = "f32"
        if kind == "random":
            return Text(self._call(function, args, "f32")[0], "f32", axes)
        if function in _ROUNDING and dtype not in FLOATS:
            return data[0]
        if function == "pow" and dtype not in FLOATS:
            function = "powi"
        met = [
            *condition,
            *(
                self._meeting(t, n, dtype)
                for t, n in zip(data, arguments[-len(data) :], strict=True)
            ),
        ]
        if function in _LIBRARY or (dtype == "f64" and function in _OF_LIBRARY):
            met = [self._placed(t, dtype) for t in met]
        code, loose = self._call(function, met, dtype)
        return Text(code, "b8" if kind in ("compare", "test") else dtype, axes, loose)

    def _placed(self, text: Text, dtype: str) -> Text:
        """An operand of the library, which takes no bare constants and sizes."""
        if text.axes:
            return text
        return Text(f"tl.cast({text.code}, {spelling.DTYPES[dtype]})", dtype)

    def _power(self, exponent: Expr, over: tuple[str, ...]) -> Text | None:
        """exp(a - b) as a power of two, where b is the same along an axis of a, so that its
        product with LOG2_E is done once for many; None for other exponents."""
        match exponent:
            case Apply("sub", (Tile() as a, Tile() as b)):
                left, right = self.text(a, over), self.text(b, over)
                if {left.dtype, right.dtype} != {"f32"} or not right.axes < left.axes:
                    return None
                factor = self.factors.get(a.value)
                by = f"({factor} * LOG2_E)" if factor else "LOG2_E"
                code = f"tl.exp2({left.operand} * {by} - {right.operand} * LOG2_E)"
                return Text(code, "f32", left.axes)
        return None

    def _meeting(self, text: Text, expr: Expr, dtype: str) -> Text:
        """An operand in the dtype in which operands meet; constants and sizes meet by themselves."""
        if isinstance(expr, Number | Size) or text.dtype == dtype:
            if isinstance(expr, Number) and dtype in FLOATS and text.dtype == "i32":
                return Text(spelling.number(float(expr.value)), dtype, loose=text.loose)
            return text
        return self.cast(text, dtype)

    def _call(self, function: str, args: list[Text], dtype: str) -> tuple[str, bool]:
        if dtype in FLOATS and function in _ON_FLOATS:
            return self._filled(_ON_FLOATS[function], function, args), False
        if function in _WHOLE.values():
            sign = "//" if function == "quotient" else "%"
            return f"{args[0].operand} {sign} {args[1].operand}", True
        if function in _INFIX:
            left, right = args
            return f"{left.operand} {_INFIX[function]} {right.operand}", True
        if function in _COMPARE:
            left, right = args
            return f"{left.operand} {_COMPARE[function]} {right.operand}", True
        if function == "neg":
            return f"-{args[0].operand}", True
        if function == "not":
            return f"~{args[0].operand}", True
        if function not in _CALLS:
            raise BackendError("emit", f"`{function}` has no spelling in Triton")
        return self._filled(_CALLS[function], function, args), function in _LOOSE

    def _filled(self, call: str, function: str, args: list[Text]) -> str:
        codes = [a.code for a in args]
        if function in _TWICE:
            codes = [c if c.isidentifier() else self.temporary(c) for c in codes]
        return call.format(*codes)


def _counts(expr: Expr) -> bool:
    """Whether an expression is certainly a whole number that is not negative."""
    match expr:
        case Index():
            return True
        case Size(name):
            return name.isupper()
        case Number(value):
            return isinstance(value, int) and value >= 0
        case Apply("add" | "mul" | "floordiv" | "mod" | "minimum" | "maximum", args):
            return all(_counts(a) for a in args)
    return False


def _constant(value: float | int | bool) -> str:
    """The dtype of a constant."""
    if isinstance(value, bool):
        return "b8"
    if isinstance(value, float):
        return "f32"
    return "i64" if is_long(value) else "i32"


def _negative(value: float | int | bool) -> bool:
    return not isinstance(value, bool) and value < 0
