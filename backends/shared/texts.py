"""Sizes and constants of a nest as C-like text."""

from __future__ import annotations

import re

from backends.backend import BackendError
from ir.functions import POINTWISE
from ir.nest.steps import counts, whole
from ir.spec import FLOATS, Apply, Cast, Expr, Index, Number, Size

_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "/", "mod": "%"}
_TIGHT = {"mul", "floordiv", "mod"}
_FMOD = "__builtin_fmod({0}, {1})"
_MOD = f"({_FMOD} != 0 && (({{0}}) < 0) != (({{1}}) < 0) ? {_FMOD} + ({{1}}) : {_FMOD})"
_SCALARS = {  # of a constant of the launch, in double
    "div": "({}) / double({})",
    "rsqrt": "1.0 / __builtin_sqrt({})",
    "pow": "__builtin_pow({}, {})",
    "abs": "__builtin_fabs({})",
    "neg": "-({})",
    "square": "({0}) * ({0})",
    "add": "{} + {}",
    "sub": "{} - ({})",
    "mul": "({}) * ({})",
    "floordiv": f"__builtin_rint((({{0}}) - {_MOD}) / ({{1}}))",
    "mod": _MOD,
    "fmod": _FMOD,
    "round": "__builtin_rint({})",
    # A NaN among the operands is the result.
    "maximum": "(({0}) > ({1}) || ({0}) != ({0}) ? ({0}) : ({1}))",
    "minimum": "(({0}) < ({1}) || ({0}) != ({0}) ? ({0}) : ({1}))",
    "relu": "(({0}) < 0 ? 0 : ({0}))",
    "sign": "((({0}) > 0) - (({0}) < 0))",
    "sigmoid": "1.0 / (1.0 + __builtin_exp(-({0})))",
    "silu": "({0}) / (1.0 + __builtin_exp(-({0})))",
    "gelu": "0.5 * ({0}) * __builtin_erfc(-({0}) * 0.7071067811865476)",
    "xor": "(({}) ^ ({}))",
    "and": "(({}) & ({}))",
    "or": "(({}) | ({}))",
    "not": "~({})",
    "shl": "(({}) << ({}))",
    "shr": "(({}) >> ({}))",
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
        *(
            "floor",
            "ceil",
            "trunc",
            "sqrt",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
        ),
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
        *("atanh", "erf", "erfc", "isnan", "isinf", "isfinite"),
    )
}
_SCALARS["atan2"] = "__builtin_atan2({}, {})"
_OF_COUNTS = {"floordiv": "({}) / ({})", "mod": "({}) % ({})"}  # that round down as C does
_OF_WHOLE = {  # of integers, in Index
    "abs": "(({0}) < 0 ? -({0}) : ({0}))",
    "floordiv": "((({0}) - ((({0}) % ({1})) + ({1})) % ({1})) / ({1}))",
    "mod": "(((({0}) % ({1})) + ({1})) % ({1}))",
    "fmod": "({}) % ({})",
    # To a negative power 1 and -1 have an inverse, any other integer 0.
    "pow": "(({0}) == 0 && ({1}) < 0 ? 0 : Index(__builtin_pow({0}, {1})))",
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), "{}"),
}
_CASTS = {  # to integers of a few bits, which wrap, and to truth values
    "b8": "(({}) != 0)",
    "u8": "(Index({}) & 255)",
    "i8": "(((Index({}) + 128) & 255) - 128)",
    "i16": "(((Index({}) + 32768) & 65535) - 32768)",
}
# Functions of the compiler that a text may call: of numbers alone.
BUILTINS = frozenset(
    re.findall(r"__builtin_\w+", " ".join((*_SCALARS.values(), *_OF_WHOLE.values())))
) | {
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
        form = "double({})" if expr.dtype in FLOATS else _CASTS.get(expr.dtype, "Index({})")
        return form.format(scalar(expr.value))
    if isinstance(expr, Apply) and expr.function in _SCALARS:
        return _form(expr).format(*(scalar(a) for a in expr.args))
    raise BackendError("emit", f"a constant of this sort has no spelling: {expr}")


def _form(expr: Apply) -> str:
    """How a function is spelled of these operands."""
    name = expr.function
    if name == "not" and _is_truth(expr):
        return "!({})"
    if name in _OF_COUNTS and all(map(counts, expr.args)):
        return _OF_COUNTS[name]
    if name in _OF_WHOLE and all(map(whole, expr.args)):
        return _OF_WHOLE[name]
    return _SCALARS[name]


def _is_truth(expr: Expr) -> bool:
    match expr:
        case Number(value):
            return isinstance(value, bool)
        case Cast(dtype, _):
            return dtype == "b8"
        case Apply(name, args) if POINTWISE[name].kind == "logic":
            return all(map(_is_truth, args))
        case Apply(name, _):
            return POINTWISE[name].kind in ("compare", "test")
    return False


def _group(expr: Expr, text: str) -> str:
    return f"({text})" if isinstance(expr, Apply) or text.startswith("-") else text
