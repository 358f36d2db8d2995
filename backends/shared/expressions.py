"""Expressions as typed C-like text: the operands of an operation are converted to where they meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.backend import BackendError
from backends.shared.texts import number, origin, scalar
from ir.functions import POINTWISE
from ir.nest.nest import Tile
from ir.nest.steps import constant_dtype, promote
from ir.nest.steps import scalar as is_scalar
from ir.spec import SHORT, Apply, Cast, Expr, Index, Number

_NARROW = ("f16", "bf16", "tf32")  # floats that are computed with as f32
_WHOLE = ("b8", *SHORT, "i32", "i64")
_CHOOSES = ("where", "minimum", "maximum")  # they give back an operand, so b8 stays b8
OPERATORS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "eq": "{} == {}",
    "ne": "{} != {}",
    "and": "{} & {}",
    "or": "{} | {}",
    "xor": "{} ^ {}",
    "not": "~{}",
    "where": "{} ? {} : {}",
}
TRUTH = {"and": "{} && {}", "or": "{} || {}", "xor": "{} != {}", "not": "!{}"}
IDENTITY = ("floor", "ceil", "round", "trunc")  # of integers


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the dtype of its value, as it is computed with: never a narrow float."""

    text: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Language:
    """How a language spells types and functions."""

    types: Mapping[str, str]  # of f32, i32, i64, i16, i8, u8 and b8
    functions: str  # what calls of the prelude begin with


CPP = Language(
    types={
        "f32": "float",
        "tf32": "float",
        "f16": "f16",
        "bf16": "bf16",
        "b8": "bool",
        "i64": "i64",
        "i32": "i32",
        "i16": "i16",
        "i8": "i8",
        "u8": "u8",
    },
    functions="fn::",
)


class Expressions:
    """Renders expressions. leaf: the text of a tile's element and the dtype that it is held in;
    local: the text of an index's place within its tile."""

    def __init__(
        self,
        language: Language,
        leaf: Callable[[Tile], tuple[str, str]],
        local: Callable[[str], str],
    ):
        self.language, self.leaf, self.local = language, leaf, local

    def assigned(self, expr: Expr, dtype: str) -> str:
        """The text of an expression as a value of a dtype."""
        return self.converted(self.of(expr), dtype)

    def of(self, expr: Expr) -> Text:
        """The text of an expression, in brackets where an operator could take it apart."""
        match expr:
            case _ if is_scalar(expr):
                dtype = constant_dtype(expr)
                return Text(self._constant(expr, dtype), dtype)
            case Tile():
                text, dtype = self.leaf(expr)
                if dtype in _NARROW:
                    return Text(text if dtype == "tf32" else f"float({text})", "f32")
                return Text(text, dtype)
            case Index(name):
                return Text(f"i32({origin(name)} + {self.local(name)})", "i32")
            case Cast(dtype, value):
                found = self.converted(self.of(value), dtype)
                if dtype in _NARROW:
                    return Text(found if dtype == "tf32" else f"float({found})", "f32")
                return Text(found, dtype)
            case Apply():
                return self._apply(expr)
        raise BackendError("emit", f"a {type(expr).__name__} has no text")

    def converted(self, given: Text, dtype: str) -> str:
        """A text as a value of another dtype."""
        name = self.language.types.get(dtype)
        if name is None:
            raise BackendError("emit", f"this language has no {dtype}")
        if given.dtype == dtype:
            return given.text
        if dtype == "b8":
            return f"({given.text} != 0)"
        if dtype == "tf32":
            return f"{self.language.functions}round_tf32({given.text})"
        if dtype in _WHOLE and given.dtype not in _WHOLE:
            wide = "i64" if dtype == "i64" else "i32"  # narrower ones wrap
            cut = f"{self.language.functions}{wide}_from({given.text})"
            return cut if wide == dtype else f"{name}({cut})"
        inner = given.text if given.dtype in ("f32", *_WHOLE) else f"float({given.text})"
        return f"{name}({inner})"

    def _constant(self, expr: Expr, dtype: str) -> str:
        text = scalar(expr)
        if dtype == "f32":
            plain = isinstance(expr, Number) and "inf" not in text
            return f"{number(float(expr.value))}f" if plain else f"float({text})"
        return text if isinstance(expr, Number) and dtype == "i32" else f"{dtype}({text})"

    def _apply(self, expr: Apply) -> Text:
        name, kind = expr.function, POINTWISE[expr.function].kind
        args = [self.of(a) for a in expr.args]
        if name == "where":
            meet = self._meet(name, kind, args[1:])
            texts = [self.converted(args[0], "b8"), *(self.converted(a, meet) for a in args[1:])]
            return Text(f"({OPERATORS[name].format(*texts)})", meet)
        if name == "pow" and expr.args[1] == Number(2):
            name, args = "square", args[:1]
        meet = self._meet(name, kind, args)
        texts = [self.converted(a, meet) for a in args]
        result = {"compare": "b8", "test": "b8", "random": "f32"}.get(kind, meet)
        if name in IDENTITY and meet in _WHOLE:
            return Text(texts[0], meet)
        table = OPERATORS | (TRUTH if meet == "b8" else {})
        if name in table:
            return Text(f"({table[name].format(*texts)})", result)
        return Text(f"{self.language.functions}{name}({', '.join(texts)})", result)

    def _meet(self, name: str, kind: str, args: list[Text]) -> str:
        """The dtype in which the operands meet."""
        if kind in ("float", "test"):
            return "f32"
        if kind == "random":
            return "i64"
        dtypes = tuple(a.dtype for a in args)
        if kind == "logic" and "b8" in dtypes:
            return "b8"
        meet = promote(dtypes)
        return "i32" if meet == "b8" and kind == "arithmetic" and name not in _CHOOSES else meet
