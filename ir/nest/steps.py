"""Splits expressions into single operations, for machines whose tiles are in local memory.

A machine with registers renders a whole expression. Others run one operation at a time and keep
intermediate tiles in local memory; the footprint counts exactly these temporaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ir.dtypes import is_long
from ir.functions import POINTWISE
from ir.memo import kept
from ir.nest.nest import Map, Tile, Value
from ir.spec import FLOATS, SHORT, SMALL, Apply, Cast, Expr, Index, Number, Size

_OLD = "old"  # entry of `alive` while the map still reads the value's old content
# In ascending order of promotion.
_WIDTH = ("b8", *SHORT, "i32", "i64", *SMALL, "f16", "bf16", "tf32", "f32", "f64")
_WHOLE = ("i32", "i64", *SHORT)
_NARROW = (*SMALL, "f16", "bf16", "tf32")


@dataclass(frozen=True, slots=True)
class Temporary(Expr):
    """A tile between two steps."""

    name: str  # unique among temporaries that are live together
    dtype: str
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """to = function(args)."""

    to: Temporary | Tile
    function: str  # a pointwise name, `copy` (which converts) or `iota`
    args: tuple[Expr, ...]  # tiles, temporaries, scalars (see `scalar`); for `iota` the index


def promote(dtypes: tuple[str, ...]) -> str:
    """The dtype in which operands of several dtypes are combined.

    It is the widest one, floats at least f32, integers at least i32.
    """
    if not dtypes:
        return "f32"
    widest = max(dtypes, key=_WIDTH.index)
    if widest in SHORT:
        return "i32"
    return "f32" if widest in _NARROW else widest


def steps(statement: Map, values: Mapping[str, Value]) -> tuple[Step, ...]:
    """The steps of a map; the last one writes the map's value.

    An intermediate with the axes and dtype of the value reuses the value's memory while that holds
    nothing live.
    """
    here = [values[name] for name in _named(statement)]
    key = tuple([(v.dtype, v.names) for v in here])
    known = _known(statement)
    if key not in known:
        maker = _Maker(here[0], values)
        maker.finish(statement.expression)
        known[key] = tuple(maker.steps)
    return known[key]


@kept
def _known(statement: Map) -> dict[object, tuple[Step, ...]]:
    """Cached steps of a map, by the dtypes and axes of its values.

    Launches that differ in tile sizes share their maps.
    """
    return {}


@kept
def _named(statement: Map) -> tuple[str, ...]:
    """The value that a map writes, and those that it reads."""
    read = (n.value for n in statement.expression.walk() if isinstance(n, Tile))
    return tuple(dict.fromkeys((statement.value, *read)))


@dataclass(slots=True)
class _Maker:
    value: Value
    values: Mapping[str, Value]
    steps: list[Step] = field(default_factory=list)
    alive: set[str] = field(default_factory=set)

    def finish(self, expr: Expr) -> None:
        if any(isinstance(n, Tile) and n.value == self.value.name for n in expr.walk()):
            self.alive.add(_OLD)
        if isinstance(expr, Cast) and expr.dtype in _WHOLE and expr.dtype != self.value.dtype:
            # Wrap to the narrow integer first.
            args: tuple[Expr, ...] = (self._operand(expr),)
            function = "copy"
        else:
            args, function = self._operands(expr)
        self._release(args)
        self.steps.append(Step(Tile(self.value.name), function, args))

    def _operands(self, expr: Expr) -> tuple[tuple[Expr, ...], str]:
        """The operands of the outermost operation, and its name."""
        if scalar(expr):
            return (expr,), "copy"
        if isinstance(expr, Apply):
            if expr.function == "pow" and expr.args[1] == Number(2):
                expr = Apply("square", expr.args[:1])
            return self._meeting(expr, tuple(self._operand(a) for a in expr.args)), expr.function
        if isinstance(expr, Cast):
            return (self._operand(expr.value),), "copy"
        if isinstance(expr, Index):
            return (expr,), "iota"
        return (expr,), "copy"

    def _meeting(self, expr: Apply, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The operands, with integer tiles converted to float where they are combined with
        floats."""
        kinds = {self._operand_dtype(a) for a in args}
        kind = POINTWISE[expr.function].kind
        to_float = kind in ("float", "test") or kinds & set(FLOATS)
        if not to_float or not kinds & set(_WHOLE):
            return args
        return tuple(self._floating(a) for a in args)

    def _floating(self, arg: Expr) -> Expr:
        if scalar(arg) or self._operand_dtype(arg) not in _WHOLE:
            return arg
        self._release((arg,))
        to = self._target("f32", self._axes((arg,)))
        self.steps.append(Step(to, "copy", (arg,)))
        return to

    def _operand(self, expr: Expr) -> Expr:
        if isinstance(expr, Tile) or scalar(expr):
            return expr
        if isinstance(expr, Cast) and self._exact(expr):
            return expr.value
        args, function = self._operands(expr)
        dtype = self._dtype(expr, function, args)
        axes = self._axes(args)
        self._release(args)
        to = self._target(dtype, axes)
        self.steps.append(Step(to, function, args))
        return to

    def _exact(self, expr: Cast) -> bool:
        """Whether a cast changes no value: a tile of a narrower float, which its reader widens."""
        inner = expr.value
        return (
            isinstance(inner, Tile)
            and expr.dtype == "f32"
            and self.values[inner.value].dtype in (*_NARROW, "f32")
        )

    def _target(self, dtype: str, axes: tuple[str, ...]) -> Temporary | Tile:
        name = self.value.name
        fits = dtype == self.value.dtype and set(axes) == set(self.value.names)
        if fits and name not in self.alive and _OLD not in self.alive:
            self.alive.add(name)
            return Tile(name)
        number = 0
        while (label := f"{dtype}_{'_'.join(axes) or 'scalar'}_{number}") in self.alive:
            number += 1
        self.alive.add(label)
        return Temporary(label, dtype, axes)

    def _release(self, args: tuple[Expr, ...]) -> None:
        for a in args:
            if isinstance(a, Temporary):
                self.alive.discard(a.name)
            elif isinstance(a, Tile) and a.value == self.value.name:
                self.alive.discard(a.value)

    def _axes(self, args: tuple[Expr, ...]) -> tuple[str, ...]:
        inside: set[str] = set()
        for a in args:
            if isinstance(a, Temporary):
                inside.update(a.axes)
            elif isinstance(a, Index):
                inside.add(a.name)
            elif isinstance(a, Tile):
                inside.update(tile_axes(a, self.values))
        return tuple(n for n in self.value.names if n in inside)

    def _dtype(self, expr: Expr, function: str, args: tuple[Expr, ...]) -> str:
        if isinstance(expr, Cast):
            return expr.dtype
        if function == "iota":
            return "i32"
        kind = POINTWISE[function].kind
        if kind in ("compare", "test"):
            return "b8"
        if kind == "random":
            return "f32"
        data = args[1:] if function == "where" else args
        dtypes = tuple(self._operand_dtype(a) for a in data)
        if kind == "logic" and "b8" in dtypes:
            return "b8"
        wide = promote(dtypes)
        return wide if kind != "float" or wide in FLOATS else "f32"

    def _operand_dtype(self, arg: Expr) -> str:
        if isinstance(arg, Temporary):
            return arg.dtype
        if isinstance(arg, Tile):
            return self.values[arg.value].dtype
        return constant_dtype(arg)


def tile_axes(tile: Tile, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The indices that a tile runs over: its axes, with windows replaced by their indices."""
    names = values[tile.value].names
    if not tile.windows:
        return names
    windows = {w.axis: [i for i, _ in w.terms] for w in tile.windows}
    return tuple(dict.fromkeys(n for a in names for n in windows.get(a, [a])))


def scalar(expr: Expr) -> bool:
    """Whether an expression is one number for the whole launch: of sizes and constants only.

    A random number is not: it is drawn for each element.
    """
    if isinstance(expr, (Tile, Temporary, Index)) or _random(expr):
        return False
    return all(map(scalar, expr.children()))


def _random(expr: Expr) -> bool:
    return isinstance(expr, Apply) and POINTWISE[expr.function].kind == "random"


def whole(expr: Expr) -> bool:
    """Whether a scalar is an integer."""
    for node in expr.walk():
        if isinstance(node, Number) and isinstance(node.value, float):
            return False
        if isinstance(node, Size) and node.name.islower():
            return False
        if isinstance(node, Cast) and node.dtype in FLOATS:
            return False
        if isinstance(node, Apply) and POINTWISE[node.function].kind == "float":
            return False
    return True


def counts(expr: Expr) -> bool:
    """Whether an expression is certainly an integer that is not negative."""
    match expr:
        case Index():
            return True
        case Size(name):
            return name.isupper()
        case Number(value):
            return isinstance(value, int) and value >= 0
        case Apply("add" | "mul" | "floordiv" | "mod" | "minimum" | "maximum", args):
            return all(counts(a) for a in args)
    return False


def constant_dtype(expr: Expr) -> str:
    """The dtype of a scalar as an operand: b8, i32 or i64 if it is a truth value or an integer, else f32."""
    if isinstance(expr, Number) and isinstance(expr.value, bool):
        return "b8"
    if not (scalar(expr) and whole(expr)):
        return "f32"
    nodes = tuple(expr.walk())
    long = any(isinstance(n, Number) and is_long(n.value) for n in nodes)
    return "i64" if long or any(isinstance(n, Cast) and n.dtype == "i64" for n in nodes) else "i32"
