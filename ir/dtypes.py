"""Dtype rules of expressions: promotion, and the dtypes that each function takes and returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from ir.errors import KernelError
from ir.functions import POINTWISE, REDUCTIONS
from ir.spec import (
    FLOATS,
    GIVEN,
    SCALE,
    SHORT,
    SMALL,
    Apply,
    Bucketize,
    Cast,
    Expr,
    Index,
    Number,
    Range,
    Read,
    Reduce,
    Scan,
    Size,
)

TORCH_NAMES = {  # PyTorch's name of each dtype
    "f64": "float64",
    "f32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "b8": "bool",
}
# A constant adopts the dtype of its other operand. These are the dtypes of constants alone.
WEAK = {"bool": "b8", "int": "i32", "float": "f32"}
_RISING = (
    ("b8", "bool"),
    ("int",),
    SHORT,
    ("i32",),
    ("i64",),
    ("float",),
    SMALL,
    ("bf16", "f16"),
    ("tf32",),
    ("f32",),
    ("f64",),
)
_ORDER = {dtype: k for k, dtypes in enumerate(_RISING) for dtype in dtypes}
_CHOOSES = ("where", "minimum", "maximum")  # functions that return one of their operands


def is_float(dtype: str) -> bool:
    """Whether a dtype, or a constant's kind, is a float."""
    return dtype in FLOATS or dtype == "float"


def is_bool(dtype: str) -> bool:
    """Whether a dtype, or a constant's kind, is a boolean."""
    return dtype in ("b8", "bool")


def is_integer(dtype: str) -> bool:
    """Whether a dtype, or a constant's kind, is an integer other than a boolean."""
    return not is_float(dtype) and not is_bool(dtype)


def is_long(value: float | int | bool) -> bool:
    """Whether a constant is an integer outside the range of i32, and so an i64."""
    return type(value) is int and not -(2**31) <= value < 2**31


def promote(a: str, b: str) -> str:
    """The dtype of an operation on two operands.

    b8 < i8, u8, i16 < i32 < i64 < f8e4m3, f8e5m2, f8e8m0 < bf16, f16 < tf32 < f32 < f64. Two
    different floats of 16 bits, or of 8, give f32. So do f8e8m0 and f16, which lacks its range. Two
    different integers narrower than i32 give i32. A constant does not raise a dtype of its own
    kind; a float constant makes an integer f32.
    """
    if {a, b} in ({"bf16", "f16"}, {SCALE, "f16"}) or a != b and {a, b} <= set(SMALL):
        return "f32"
    if a != b and {a, b} <= set(SHORT):
        return "i32"
    low, high = sorted((a, b), key=_ORDER.__getitem__)
    if _ORDER[low] == _ORDER[high]:
        return a if a not in WEAK else b
    if high in WEAK and low not in WEAK:
        return WEAK[high]
    return high


def strong(dtype: str) -> str:
    """The dtype in which a value is stored; a constant's kind becomes its own dtype."""
    return WEAK.get(dtype, dtype)


class Dtypes:
    """Infers dtypes and checks operands.

    tensors: the dtype of every tensor defined so far.
    attributes: values by name.
    """

    def __init__(self, tensors: Mapping[str, str], attributes: Mapping[str, float | int]):
        self.tensors = tensors
        self.attributes = attributes

    def of(self, expr: Expr) -> str:
        """The dtype of an expression; "bool", "int" or "float" for a constant."""
        match expr:
            case Number(value):
                return "i64" if is_long(value) else type(value).__name__
            case Size(name):
                return "float" if isinstance(self.attributes.get(name), float) else "int"
            case Index():
                return "i32"
            case Read():
                return self._read(expr)
            case Cast(dtype, value):
                self.of(value)
                if dtype in GIVEN:
                    raise KernelError(
                        f"a cast to {dtype}, which only inputs are",
                        place=expr.place,
                        hint="compute the power of two in f32: `exp2(...)`",
                    )
                return dtype
            case Bucketize(value, borders):
                self._key(self.of(value), self.tensors[borders], expr)
                return "i32"
            case Reduce():
                return self._reduce(expr)
            case Scan(reduction, body):
                return _reduced(reduction, self.of(body))
            case Apply():
                return self._apply(expr)
        raise AssertionError(f"no dtype for {type(expr).__name__}")

    def positions(self, at: Iterable[Expr]) -> None:
        """Raises KernelError if a position is not an integer."""
        for expr in at:
            dtype = self.of(expr)
            if not is_integer(dtype):
                raise KernelError(
                    f"a position has the dtype {strong(dtype)}",
                    place=expr.place,
                    allowed="integers",
                    hint="positions are indices, sizes, reads of integer tensors; `//` divides",
                )

    def _read(self, expr: Read) -> str:
        self.positions(expr.at)
        dtype, pad = self.tensors[expr.tensor], expr.pad
        if pad is not None and not is_float(dtype) and (math.isinf(pad) or pad != int(pad)):
            raise KernelError(
                f"`{expr.tensor}` holds {dtype} and is padded with {pad}",
                place=expr.place,
                allowed="a whole number",
                hint=f"cast the read, `f32({expr.tensor}[...])`, in an equation of its own",
            )
        if dtype in ("f8e4m3", SCALE) and pad is not None and math.isinf(pad):
            raise KernelError(
                f"`{expr.tensor}` holds {dtype}, which has no infinity, and is padded with {pad}",
                place=expr.place,
                allowed="a number",
                hint=f"cast the read, `f32({expr.tensor}[...])`, in an equation of its own",
            )
        return dtype

    def _key(self, dtype: str, borders: str, expr: Bucketize) -> None:
        if is_float(dtype) and not is_float(borders):
            raise KernelError(
                f"`bucketize` searches for {strong(dtype)} in `{expr.borders}`, which holds {borders}",
                place=expr.place,
                allowed="integers, or borders that are floats",
                hint=f"cast the borders in an equation of their own: `f32({expr.borders}[...])`",
            )

    def _reduce(self, expr: Reduce) -> str:
        for r in expr.ranges:
            self._bounds(r)
        dtype = self.of(expr.body)
        if expr.reduction in ("any", "all"):
            _truth(dtype, expr.body, expr.reduction)
            return "b8"
        return "i32" if expr.reduction.startswith("arg") else _reduced(expr.reduction, dtype)

    def _bounds(self, expr: Range) -> None:
        for bound in (expr.low, expr.high) if expr.jagged else ():
            self.positions([bound])

    def _apply(self, expr: Apply) -> str:
        dtypes = [self.of(a) for a in expr.args]
        name, kind = expr.function, POINTWISE[expr.function].kind
        self._operands(expr, dtypes)
        if name == "where":
            dtypes = dtypes[1:]
        if kind in ("compare", "test") or (kind == "logic" and is_bool(dtypes[0])):
            return "b8"
        if kind == "random":
            return "f32"
        result = dtypes[0]
        for dtype in dtypes[1:]:
            result = promote(result, dtype)
        if kind == "float" and not is_float(result):
            return "float" if result in WEAK else "f32"
        return result if name in _CHOOSES else _counted(result)

    def _operands(self, expr: Apply, dtypes: list[str]) -> None:
        """Raises KernelError if an operand has a dtype that the function does not take."""
        name, kind = expr.function, POINTWISE[expr.function].kind
        if name == "where":
            _truth(dtypes[0], expr.args[0], "where")
        elif kind == "test":
            _require(is_float, dtypes, expr, "a float", "integers are finite; cast it: `f32(x)`")
        elif kind in ("bits", "random"):
            _require(is_integer, dtypes, expr, "integers", "cast it: `i32(x)`")
        elif kind == "logic" and not all(map(is_integer, dtypes)):
            for dtype, arg in zip(dtypes, expr.args, strict=True):
                _truth(dtype, arg, POINTWISE[name].operator)


def _require(
    fits: Callable[[str], bool], dtypes: list[str], expr: Apply, allowed: str, hint: str
) -> None:
    for dtype, arg in zip(dtypes, expr.args, strict=True):
        if not fits(dtype):
            name = POINTWISE[expr.function].operator or expr.function
            raise KernelError(
                f"`{name}` is given {strong(dtype)}", place=arg.place, allowed=allowed, hint=hint
            )


def _reduced(reduction: str, dtype: str) -> str:
    dtype = strong(dtype)
    return _counted(dtype) if reduction in ("sum", "prod") or dtype in (*SMALL, *SHORT) else dtype


def _counted(dtype: str) -> str:
    """The dtype of arithmetic results.

    Booleans and integers narrower than i32 become i32; tf32 and 8-bit floats become f32.
    """
    if dtype in SMALL:
        return "f32"
    if dtype in SHORT:
        return "i32"
    return {"b8": "i32", "bool": "int", "tf32": "f32"}.get(dtype, dtype)


def _truth(dtype: str, expr: Expr, function: str) -> None:
    if not is_bool(dtype):
        alone = function == "where" or function in REDUCTIONS
        raise KernelError(
            f"`{function}` is given {strong(dtype)} where it needs a truth value",
            place=expr.place,
            allowed="b8" if alone else "b8 alone, or integers alone",
            hint="compare it: `x != 0`",
        )
