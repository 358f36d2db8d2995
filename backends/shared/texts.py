"""Sizes and constants of a nest as C-like text."""

from __future__ import annotations

import re

from backends.backend import BackendError
from ir.spec import FLOATS, Apply, Cast, Expr, Index, Number, Size

_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "/", "mod": "%"}
_TIGHT = {"mul", "floordiv", "mod"}
_SCALARS = {  # of a constant of the launch, in double
    "div": "({}) / double({})",
    "rsqrt": "1.0 / __builtin_sqrt({})",
    "sqrt": "__builtin_sqrt({})",
    "exp": "__builtin_exp({})",
    "log": "__builtin_log({})",
    "pow": "__builtin_pow({}, {})",
    "tanh": "__builtin_tanh({})",
    "erf": "__builtin_erf({})",
    "abs": "__builtin_fabs({})",
    "maximum": "__builtin_fmax({}, {})",
    "minimum": "__builtin_fmin({}, {})",
    "neg": "-({})",
    "square": "__builtin_pow({}, 2)",
    "add": "{} + {}",
    "sub": "{} - ({})",
    "mul": "({}) * ({})",
    "floordiv": "({}) / ({})",
    "mod": "({}) % ({})",
    "round": "__builtin_rint({})",
    "relu": "__builtin_fmax({}, 0)",
    "xor": "({}) ^ ({})",
    "and": "({}) & ({})",
    "or": "({}) | ({})",
    "not": "~({})",
    "shl": "({}) << ({})",
    "shr": "({}) >> ({})",
    "lt": "({}) < ({})",
    "le": "({}) <= ({})",
    "gt": "({}) > ({})",
    "ge": "({}) >= ({})",
    "eq": "({}) == ({})",
    "ne": "({}) != ({})",
    "where": "(({}) ? ({}) : ({}))",
}
_SCALARS |= {
    name: f"__builtin_{name}({{}})"
    for name in (
        *("floor", "ceil", "trunc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"),
        *("asinh", "acosh", "atanh", "exp2", "expm1", "log2", "log10", "log1p", "erfc"),
        *("isnan", "isinf", "isfinite"),
    )
}
_SCALARS |= {name: f"__builtin_{name}({{}}, {{}})" for name in ("atan2", "fmod")}
# Functions of the compiler that a text may call: of numbers alone.
BUILTINS = frozenset(re.findall(r"__builtin_\w+", " ".join(_SCALARS.values()))) | {
    "__builtin_inf",
    "__builtin_nan",
}
_LARGEST = 2**53  # constants come to a device as doubles


def origin(index: str) -> str:
    """The variable that holds where an index's tile starts."""
    return f"{index}_at"


def count(index: str) -> str:
    """The variable that holds how many elements of an index's tile are inside."""
    return f"{index}_n"


def size(expr: Expr) -> str:
    """A size expression. Sizes are not negative, so C rounds `/` as `//` does."""
    if isinstance(expr, Number):
        return str(expr.value)
    if isinstance(expr, Size):
        return expr.name
    if isinstance(expr, Index):  # in a loop's bound: where its tile starts
        return origin(expr.name)
    if isinstance(expr, Apply) and expr.function in _INFIX:
        a, b = (size(x) for x in expr.args)
        if expr.function in _TIGHT:
            a, b = _group(expr.args[0], a), _group(expr.args[1], b)
        elif expr.function == "sub":
            b = _group(expr.args[1], b)
        if expr.function == "add" and b.startswith("-"):
            return f"{a} - {b[1:]}"
        return f"{a} {_INFIX[expr.function]} {b}"
    if isinstance(expr, Apply) and expr.function == "minimum":
        return f"least({', '.join(size(x) for x in expr.args)})"
    raise BackendError("emit", f"a size of this sort has no spelling: {expr}")


def span(terms: tuple[tuple[str, int], ...]) -> str:
    """How many positions a window over the inside of its indices' tiles has."""
    (index, step), *more = terms
    if not more and step == 1:
        return count(index)
    parts = [f"({count(i)} - 1)" if c == 1 else f"{c} * ({count(i)} - 1)" for i, c in terms]
    return " + ".join((*parts, "1"))


def number(value: float | int | bool) -> str:
    """A constant."""
    if isinstance(value, bool | int):
        if abs(value) > _LARGEST:
            raise BackendError(
                "emit", f"these texts have no constant as large as {value} (`long constant`)"
            )
        return str(int(value))
    if value in (float("inf"), -float("inf")):
        return "inf" if value > 0 else "-inf"
    return repr(float(value))


def scalar(expr: Expr) -> str:
    """A number of the launch: an expression over sizes, attributes and constants."""
    if isinstance(expr, Number):
        return number(expr.value)
    if isinstance(expr, Size):
        return expr.name
    if isinstance(expr, Cast):
        kind = "double" if expr.dtype in FLOATS else "Index"
        return f"{kind}({scalar(expr.value)})"
    if isinstance(expr, Apply) and expr.function in _SCALARS:
        return _SCALARS[expr.function].format(*(scalar(a) for a in expr.args))
    raise BackendError("emit", f"a constant of this sort has no spelling: {expr}")


def _group(expr: Expr, text: str) -> str:
    return f"({text})" if isinstance(expr, Apply) or text.startswith("-") else text
