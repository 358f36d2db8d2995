"""Numpy representations of dtypes, and the functions of expressions.

Floats narrower than f32 are held as f32, integers narrower than i32 as i32. Arithmetic is in the
representation's precision; a value is rounded when it is written to a fragment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ir.functions import POINTWISE
from ir.reference.labelled import NUMPY, ON_TRUTH
from ir.reference.rounding import round_to, whole
from ir.spec import FLOATS, SHORT

_HELD = {"f64": np.float64, "i64": np.int64, "b8": np.bool_}
_LOG2_E = np.float32(np.log2(np.e))


def held_as(dtype: str) -> type[np.generic]:
    """The numpy type that represents a dtype."""
    if dtype in _HELD:
        return _HELD[dtype]
    return np.float32 if dtype in FLOATS else np.int32


def unknown(dtype: str) -> Any:
    """The poison value of a dtype, for registers without an element."""
    if dtype in FLOATS:
        return held_as(dtype)(np.nan)
    return held_as(dtype)(dtype == "b8" or -1_234_567)


def converted(value: Any, source: str, dtype: str) -> Any:
    """Converts a value between dtypes: rounded to nearest even, wrapped, or truncated toward zero."""
    if source == dtype or (source, dtype) == ("tf32", "f32"):
        return value
    if dtype == "b8":
        return np.not_equal(value, 0)
    if dtype in FLOATS:
        if source in FLOATS and dtype in ("f32", "f64"):
            return value.astype(held_as(dtype))
        return np.asarray(round_to(value, dtype)).astype(held_as(dtype))[()]
    if source in FLOATS:
        value = whole(value, "i64" if dtype == "i64" else "i32")
    if dtype in SHORT:
        value = whole(value, dtype)
    return np.asarray(value).astype(held_as(dtype))[()]


def common(dtypes: list[str], function: str = "") -> str:
    """The common dtype of a function's operands; b8 remains where the function takes it."""
    kind = POINTWISE[function].kind if function in POINTWISE else ""
    if kind in ("float", "test") or any(d in FLOATS for d in dtypes):
        return "f64" if "f64" in dtypes else "f32"
    if all(d == "b8" for d in dtypes) and function in ON_TRUTH:
        return "b8"
    return "i64" if "i64" in dtypes else "i32"


def result(function: str, met: str) -> str:
    """The result dtype of a function, given the common dtype of its operands."""
    kind = POINTWISE[function].kind if function in POINTWISE else ""
    return {"compare": "b8", "test": "b8", "random": "f32"}.get(kind, met)


def function_of(name: str) -> Callable[..., Any]:
    """The numpy form of a function of the language or of tile programs. Raises KeyError where there is none."""
    return _OF_TILES[name] if name in _OF_TILES else NUMPY[name]


def exponent(value: Any, less: Any, factor: Any) -> Any:
    """The base-2 exponent of exp(value * factor - less)."""
    scale = _LOG2_E if factor is None else factor * _LOG2_E
    return value * scale - less * _LOG2_E


def power(value: Any, less: Any, factor: Any) -> Any:
    """exp(value * factor - less) as a power of two."""
    return np.exp2(exponent(value, less, factor))


def exponent_of_difference(value: Any, less: Any) -> Any:
    """The base-2 exponent of exp(value - less), with the difference taken first."""
    return (value - less) * _LOG2_E


def power_of_difference(value: Any, less: Any) -> Any:
    """exp(value - less) as a power of two, with the difference taken first."""
    return np.exp2(exponent_of_difference(value, less))


def joining(reduction: str, nan: bool) -> np.ufunc:
    """The operation of a reduction. nan: whether NaNs propagate."""
    return _JOINED[reduction][nan]


def _quotient(a: Any, b: Any) -> Any:
    return (a - np.fmod(a, b)) // b


def _uniform(seed: Any, counter: Any) -> Any:
    return np.asarray(NUMPY["uniform"](seed, counter)).astype(np.float32)[()]


_OF_TILES: dict[str, Callable[..., Any]] = {
    "quotient": _quotient,
    "remainder": np.fmod,
    "powi": NUMPY["pow"],
    "round_tf32": lambda x: round_to(x, "tf32"),
    "uniform": _uniform,
}
_JOINED: dict[str, tuple[np.ufunc, np.ufunc]] = {
    "sum": (np.add, np.add),
    "prod": (np.multiply, np.multiply),
    "max": (np.fmax, np.maximum),
    "min": (np.fmin, np.minimum),
    "any": (np.logical_or, np.logical_or),
    "all": (np.logical_and, np.logical_and),
}
