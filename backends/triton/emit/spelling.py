"""Spelling: how names, dtypes, numbers and sizes of a nest are written in Triton's Python."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace

from backends.backend import BackendError
from ir.nest.legal import legal
from ir.nest.nest import LoopNest
from ir.spec import INTEGERS, Apply, Expr, Index, Number, Size

DTYPES = {
    "f64": "tl.float64",
    "f32": "tl.float32",
    "f16": "tl.float16",
    "bf16": "tl.bfloat16",
    "tf32": "tl.float32",
    "i64": "tl.int64",
    "i32": "tl.int32",
    "b8": "tl.int1",
    "i16": "tl.int16",
    "i8": "tl.int8",
    "u8": "tl.uint8",
    "f8e4m3": "tl.float8e4nv",
    "f8e5m2": "tl.float8e5",
}
TORCH = {
    "f64": "torch.float64",
    "f32": "torch.float32",
    "f16": "torch.float16",
    "bf16": "torch.bfloat16",
    "tf32": "torch.float32",
    "i64": "torch.int64",
    "i32": "torch.int32",
    "b8": "torch.bool",
    "i16": "torch.int16",
    "i8": "torch.int8",
    "u8": "torch.uint8",
    "f8e4m3": "torch.float8_e4m3fn",
    "f8e5m2": "torch.float8_e5m2",
}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_TIGHT = ("mul", "floordiv", "mod")
HELPERS = (  # functions that a source may hold, a template each
    "larger",
    "smaller",
    "multiply",
    "rank",
    "floor_divide",
    "floor_modulo",
    "round_tf32",
    "float_floor_divide",
    "float_floor_modulo",
    "integer_power",
    "uniform",
)
# Words that a source has of itself: of Python, of modules, of the launcher and of the grid.
WORDS = frozenset(
    (
        *keyword.kwlist,
        *HELPERS,
        *"tl triton torch libdevice TensorDescriptor launch tensor LOG2_E".split(),
        *"range reversed min max float int bool str len type isinstance tuple list dict set".split(),
        *"abs all any divmod enumerate getattr hasattr map next print round sorted sum zip".split(),
        *"tile tiles within band_start band_height in_band".split(),
    )
)
# Temporaries, and what positions and pointers are called.
_MADE = re.compile(r"part_\d+|.+_dim\d+(_\d+)?|.+_(at|ptr)|(offs|in)_.+")


def spelled(nest: LoopNest) -> LoopNest:
    """The nest under names that its source can hold; its spec has that of the function that is
    called with its inputs."""
    words = WORDS | {launch.name for launch in nest.launches}
    indices = {i for la in nest.launches for i, _ in (*la.tiles, *la.whole)}
    tensors = {n for la in nest.launches for v in la.values for n in (v.name, v.tensor)}

    def refuses(name: str) -> bool:
        return name in words or bool(_MADE.fullmatch(name))

    def spells(name: str) -> tuple[str, ...]:
        own = () if name in indices else _of_tensor(name)
        return (name, *own, *(() if name in tensors else _of_index(name)))

    made = legal(nest, refuses, spells)
    if made.spec.name not in WORDS:
        return made
    return replace(made, spec=replace(made.spec, name=f"{made.spec.name}_"))


def _of_tensor(name: str) -> tuple[str, ...]:
    """What a source may call after a tensor or a value."""
    if name.isupper():
        return ()
    upper = name.upper()
    return (pointer(name), descriptor(name), f"{name}_factor", f"STEPS_{upper}", f"BULK_{upper}")


def _of_index(name: str) -> tuple[str, ...]:
    """What a source may call after an index."""
    if name.isupper():
        return ()
    return (
        *(origin(name), offsets(name), inside(name), block(name), even(name), f"tiles_{name}"),
        *(f"{name}_{ending}" for ending in ("step", "low", "high")),
    )


def value(name: str) -> str:
    """The variable of a value."""
    return name


def pointer(tensor: str) -> str:
    """The argument that points to a tensor."""
    return f"{tensor}_ptr"


def descriptor(tensor: str) -> str:
    """The argument that describes a tensor to the copy engine."""
    return f"{tensor}_desc"


def origin(index: str) -> str:
    """The variable that holds where an index's tile starts."""
    return f"{index}_at"


def offsets(index: str) -> str:
    """The variable that holds the positions of an index's tile."""
    return f"offs_{index}"


def inside(index: str) -> str:
    """The variable that tells which positions of an index's tile are inside."""
    return f"in_{index}"


def block(index: str) -> str:
    """The constant that holds how wide the block of an untiled index is."""
    return f"BLOCK_{index.upper()}"


def even(index: str) -> str:
    """The constant that tells that an index's tiles have nothing outside."""
    return f"EVEN_{index.upper()}"


def size(expr: Expr) -> str:
    """A size expression; an index in it stands for the origin of its tile."""
    return _size(expr)[0]


def factor(expr: Expr) -> str:
    """A size expression that something is multiplied by, on either side."""
    text, loose = _size(expr)
    divides = isinstance(expr, Apply) and expr.function in ("floordiv", "mod")
    return f"({text})" if loose or divides else text


def _size(expr: Expr) -> tuple[str, bool]:
    """The text, and whether it must be put in brackets before a product."""
    match expr:
        case Number(number):
            return str(int(number)), number < 0
        case Size(name):
            return name, False
        case Index(name):
            return origin(name), False
        case Apply("minimum" | "maximum" as function, args):
            name = "min" if function == "minimum" else "max"
            return f"{name}({', '.join(size(a) for a in args)})", False
        case Apply(function, (a, b)) if function in _INFIX:
            left, right = _size(a), _size(b)
            first = f"({left[0]})" if left[1] and function in _TIGHT else left[0]
            bare = not isinstance(b, Apply) and not right[1]
            second = right[0] if bare or function == "add" else f"({right[0]})"
            if function == "add" and second.startswith("-"):
                return f"{first} - {second[1:]}", True
            return f"{first} {_INFIX[function]} {second}", function not in _TIGHT
    raise BackendError("emit", f"a size of this sort has no spelling: {expr}")


def number(value: float | int | bool) -> str:
    """A constant."""
    if isinstance(value, bool | int):
        return str(value)
    if value in (float("inf"), -float("inf")):
        return 'float("inf")' if value > 0 else 'float("-inf")'
    return repr(float(value))


def total(parts: list[str]) -> str:
    """A sum of texts, `0` of none."""
    return " + ".join(p for p in parts if p != "0").replace("+ -", "- ") or "0"


def settled(expr: Expr) -> Expr:
    """The size that a bound does not pass wherever its tile lies: minimum(moving, N) -> N.

    What lies between such a bound and N within a tile does not count: it is neutral, or there
    is nothing, as the parts of a split are whole tiles.
    """
    if isinstance(expr, Apply) and expr.function == "minimum":
        still = [a for a in expr.args if not moves(a)]
        if len(still) == 1:
            return still[0]
    return expr


def moves(expr: Expr) -> bool:
    """Whether a size expression has the origin of a tile in it."""
    return any(isinstance(n, Index) for n in expr.walk())


def typed(value: float | int, dtype: str) -> float | int | bool:
    """A constant of a dtype; an infinite one of an integer dtype is its end."""
    if dtype == "b8":
        return bool(value)
    if dtype in INTEGERS:
        if value in (float("inf"), -float("inf")):
            bits = 63 if dtype == "i64" else 31
            return (1 << bits) - 1 if value > 0 else -(1 << bits)
        return int(value)
    return float(value)
