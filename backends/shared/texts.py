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
_SCALARS = {  # for a constant of the launch, in double
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
    # The result is NaN if an operand is NaN.
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
# for operands that are not negative, which C rounds down
_OF_COUNTS = {"floordiv": "({}) / ({})", "mod": "({}) % ({})"}
_OF_WHOLE = {  # for integers, in Index
    "abs": "(({0}) < 0 ? -({0}) : ({0}))",
    "floordiv": "((({0}) - ((({0}) % ({1})) + ({1})) % ({1})) / ({1}))",
    "mod": "(((({0}) % ({1})) + ({1})) % ({1}))",
    "fmod": "({}) % ({})",
    # With a negative exponent, 1 and -1 have an inverse; for any other integer it is 0.
    "pow": "(({0}) == 0 && ({1}) < 0 ? 0 : Index(__builtin_pow({0}, {1})))",
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), "{}"),
}
_CASTS = {  # conversions to narrow integers, which wrap, and to b8
    "b8": "(({}) != 0)",
    "u8": "(Index({}) & 255)",
    "i8": "(((Index({}) + 128) & 255) - 128)",
    "i16": "(((Index({}) + 32768) & 65535) - 32768)",
}
# The compiler's functions on numbers that a text may call.
BUILTINS = frozenset(
    re.findall(r"__builtin_\w+", " ".join((*_SCALARS.values(), *_OF_WHOLE.values())))
) | {
    "__builtin_inf",
    "__builtin_nan",
}
_LARGEST = 2**53  # constants are passed to a device as doubles


def origin(index: str) -> str:
    """The variable with the start of an index's tile."""
    return f"{index}_at"


def count(index: str) -> str:
    """The variable with the number of elements of an index's tile that are in bounds."""
    return f"{index}_n"


def size(expr: Expr) -> str:
    """A size expression. Sizes are not negative, so C's `/` equals `//`."""
    if isinstance(expr, Number):
        return str(expr.value)
    if isinstance(expr, Size):
        return expr.name
    if isinstance(expr, Index):  # in a loop's bound: the start of its tile
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
    """The number of positions of a window over the in-bounds parts of its indices' tiles."""
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
    """A constant of the launch: an expression over sizes, attributes and constants."""
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
    """The text form of a function for these operands."""
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
