"""Arrays with named axes, and the pointwise functions of the language on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ir.functions import POINTWISE
from ir.reference.philox import uniform


@dataclass(frozen=True, slots=True)
class Labelled:
    """An array with named axes."""

    axes: tuple[str, ...]
    data: np.ndarray

    def along(self, axes: tuple[str, ...]) -> np.ndarray:
        """The data transposed to the given axes, with length 1 along missing axes."""
        order = [self.axes.index(a) for a in axes if a in self.axes]
        spread = tuple(slice(None) if a in self.axes else None for a in axes)
        return self.data.transpose(order)[spread]


def union(values: Iterable[Labelled]) -> tuple[str, ...]:
    """The axes of several arrays, in order of first appearance."""
    return tuple(dict.fromkeys(a for v in values for a in v.axes))


def apply(function: str, args: list[Labelled], real: type[np.floating]) -> Labelled:
    """A pointwise function of the language, computed in the float type `real`."""
    axes = union(args)
    data = [a.along(axes) for a in args]
    if function == "uniform":
        return Labelled(axes, np.asarray(uniform(*data)).astype(real))
    condition = data[:1] if function == "where" else []
    data = _alike(data[len(condition) :], function, real)
    return Labelled(axes, np.asarray(NUMPY[function](*condition, *data)))


def counted(data: np.ndarray) -> np.ndarray:
    """Converts booleans to int64; other data is unchanged."""
    return data.astype(np.int64) if data.dtype.kind == "b" else data


def _alike(data: list[np.ndarray], function: str, real: type[np.floating]) -> list[np.ndarray]:
    """Converts operands to one kind: float if one of them is, or if the function returns a
    float."""
    kinds = {d.dtype.kind for d in data}
    if "f" in kinds or POINTWISE[function].kind in ("float", "test"):
        return [d.astype(real, copy=False) for d in data]
    return data if kinds == {"b"} and function in ON_TRUTH else [counted(d) for d in data]


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if b.ndim == 0 or b.size == 1:
        if b.flat[0] == 2:
            return a * a
    if a.dtype.kind == "i":  # an integer to a negative power truncates to 0, except for 1 and -1
        inverse = np.where(np.abs(a) == 1, np.power(a, np.abs(b)), 0)
        return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))
    return np.power(a, b)


def _only_floats(function: np.ufunc) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: function(x) if x.dtype.kind == "f" else x


def _sign(x: np.ndarray) -> np.ndarray:
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)  # sign(NaN) is 0


_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def _gelu(x: np.ndarray) -> np.ndarray:
    # 1 + erf(x) cancels for negative x; erfc(-x) does not.
    return 0.5 * x * np.asarray(_erfc(-x.astype(np.float64) / math.sqrt(2))).astype(x.dtype)


def _on_doubles(function: np.ufunc) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.asarray(function(x.astype(np.float64))).astype(x.dtype)


ON_TRUTH = ("and", "or", "xor", "not", "eq", "ne", "where", "minimum", "maximum")
NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "pow": _power,
    "neg": np.negative,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "where": np.where,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "abs": np.abs,
    "floor": _only_floats(np.floor),
    "ceil": _only_floats(np.ceil),
    "round": _only_floats(np.rint),
    "trunc": _only_floats(np.trunc),
    "sign": _sign,
    "fmod": np.fmod,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "uniform": uniform,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "square": lambda x: x * x,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": _on_doubles(_erf),
    "erfc": _on_doubles(_erfc),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sin": np.sin,
    "cos": np.cos,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": _gelu,
}
assert NUMPY.keys() == POINTWISE.keys(), "every function of the language has a numpy form"
