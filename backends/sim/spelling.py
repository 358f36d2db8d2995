"""Spelling: how names, sizes and dtypes of a nest are written in the device's C++."""

from __future__ import annotations

import re

from backends.backend import BackendError
from ir.nest.legal import legal
from ir.nest.nest import LoopNest
from ir.spec import DTYPES, FLOATS, Apply, Cast, Expr, Number, Size

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    """.split()
)
# Words that a kernel's text has of itself: of its program, of `device.h`, of the headers it needs.
WORDS = _KEYWORDS | frozenset(
    """
    pe args count tile rest axis inf afresh accumulate device least tiles pad indirect scattered
    run_of KERNEL SIZE_MAX SIZE_WIDTH
    """.split()
)
_MACRO = re.compile(r"(U?INT|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)\w*_(MAX|MIN|WIDTH|C)")
# A temporary, a named box, a word of C++ once a buffer's ending is put to it, and what the device
# keeps for itself.
_MADE = re.compile(
    rf"({'|'.join(DTYPES)})_.*_\d+|box|box_.*|char8|char16|char32|wchar|_.*|.*__.*|.*_"
)
_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "/", "mod": "%"}
_TIGHT = {"mul", "floordiv", "mod"}
OPS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "neg": "neg",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "eq": "eq",
    "ne": "ne",
    "and": "and_",
    "or": "or_",
    "not": "not_",
    "where": "select",
    "minimum": "min",
    "maximum": "max",
    "abs": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "erf": "erf",
    "sin": "sin",
    "cos": "cos",
    "silu": "silu",
    "gelu": "gelu",
    "copy": "copy",
    "xor": "xor_",
    "fmod": "fmod",
    "uniform": "uniform",
}
OPS |= {
    name: name
    for name in (
        *("round", "trunc", "sign", "isnan", "isinf", "isfinite", "shl", "shr", "exp2", "expm1"),
        *("log2", "log10", "log1p", "erfc", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"),
        *("asinh", "acosh", "atanh"),
    )
}
OF_INTEGERS = {  # operations that are others where the result is an integer
    "and": "bit_and",
    "or": "bit_or",
    "xor": "bit_xor",
    "not": "bit_not",
    "pow": "ipow",
}
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
_LARGEST = 2**53  # constants come to the device as doubles
FOLDS = {"sum": "sum", "max": "max", "min": "min", "prod": "prod", "any": "max", "all": "min"}


def is_word(name: str) -> bool:
    """Whether a name has a meaning of its own in a kernel's text."""
    return name in WORDS or bool(_MACRO.fullmatch(name))


def spelled(nest: LoopNest) -> LoopNest:
    """The nest under names that its text can hold."""
    bare = {n for n, _ in nest.spec.attributes}

    def alone(name: str) -> bool:
        return name.isupper() or name in bare

    def refuses(name: str) -> bool:
        return alone(name) and is_word(name) or bool(_MADE.fullmatch(name))

    def spells(name: str) -> tuple[str, ...]:
        return (
            (name,)
            if alone(name)
            else (
                buffer(name),
                tensor(name),
                origin(name),
                count(name),
                group(name),
                *(f"{name}_{ending}" for ending in ("tiles", "low", "high")),
            )
        )

    return legal(nest, refuses, spells)


def launch(name: str) -> str:
    """The function of a launch."""
    return re.sub("__+", "_", name)


def axis(name: str) -> str:
    """The enumerator of an axis."""
    return f"axis::{name}_" if name in _KEYWORDS else f"axis::{name}"


def buffer(name: str) -> str:
    """The variable of a value's circular buffer."""
    return f"{name}_t"


def tensor(name: str) -> str:
    """The variable of a global tensor."""
    return f"{name}_g"


def origin(index: str) -> str:
    """The variable that holds where an index's tile starts."""
    return f"{index}_at"


def count(index: str) -> str:
    """The variable that holds how many elements of an index's tile are inside."""
    return f"{index}_n"


def group(index: str) -> str:
    """The variable that holds who shares loads along a grid index."""
    return f"{index}_group"


def box(indices: tuple[str, ...]) -> str:
    """The variable of the box over the insides of indices' tiles."""
    return f"box_{'_'.join(indices)}"


def size(expr: Expr) -> str:
    """A size expression. Sizes are not negative, so C++ rounds `/` as `//` does."""
    if isinstance(expr, Number):
        return str(expr.value)
    if isinstance(expr, Size):
        return expr.name
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


def affine(terms: tuple[tuple[str, int], ...], offset: Expr, each=origin) -> str:
    """`sum(coefficient * each(index)) + offset`."""
    parts = [each(i) if c == 1 else f"{c} * {each(i)}" for i, c in terms]
    if offset != Number(0) or not parts:
        parts.append(size(offset))
    return " + ".join(parts).replace("+ -", "- ")


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
            raise BackendError("emit", f"this device has no constant as large as {value}")
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
