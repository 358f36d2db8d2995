"""Expressions of a thread program, compiled to closures over the state of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads.constants import constants
from backends.gpu.threads.interpreter.registers import Held, held, require_same
from backends.gpu.threads.interpreter.state import Block, Variable
from backends.gpu.threads.interpreter.values import (
    common,
    converted,
    exponent,
    exponent_of_difference,
    function_of,
    held_as,
    joining,
    power,
    power_of_difference,
    result,
)
from backends.gpu.threads.thread import (
    All,
    Axis,
    Element,
    Exponent,
    Launch,
    PowerOfTwo,
    Thread,
)
from backends.gpu.tile import Name
from ir.dtypes import is_long
from ir.spec import Apply, Expr, Index, Number, Size

Run = Callable[[], Any]
_WEAK = {bool: "b8", int: "i32", float: "f32"}


@dataclass(frozen=True, slots=True)
class Code:
    """An expression: arrays that broadcast with (threads, registers of each axis), or numbers."""

    run: Run
    dtype: str
    known: Any = None  # its value, if it is a constant

    @staticmethod
    def constant(value: float | int | bool) -> Code:
        """A constant of the spec."""
        dtype = "i64" if is_long(value) else _WEAK[type(value)]
        return Code.of(value, dtype)

    @staticmethod
    def of(value: Any, dtype: str) -> Code:
        """A known value."""
        held = held_as(dtype)(value)
        return Code(lambda: held, dtype, held)


class Compiler:
    """Compiles the expressions of one launch at given sizes."""

    def __init__(self, launch: Launch, sizes: Mapping[str, float], block: Block):
        self.launch = launch
        self.sizes = {**dict(launch.attributes), **sizes}
        self.block = block
        self.constants = constants(launch.constants, self.sizes)
        self.truths = {
            n for n, e in launch.constants if isinstance(e, of.Even | All | of.Describable)
        }
        # Compiles expressions that load: entries, and ranks in a table.
        self.load: Callable[[of.Entry | of.Ranked, Sequence[Held]], Code] | None = None

    def axis(self, axis: Axis) -> Held:
        """An axis at the sizes of the launch."""
        return held(axis, self.sizes, self.constants, self.launch.threads)

    def number(self, expr: Expr) -> int:
        """The value of an expression that depends only on sizes."""
        code = self.of(expr, ())
        if code.known is None:
            raise BackendError("emit", f"a {type(expr).__name__} is not known before a launch")
        return int(code.known)

    def of(self, expr: Expr, axes: Sequence[Held]) -> Code:
        """An expression at the registers of some axes."""
        match expr:
            case Number(value):
                return Code.constant(value)
            case Size(name):
                return Code.constant(self.sizes[name])
            case Index(name):
                return self._scalar(Name("origin", name), axes)
            case Name() if expr in self.constants:
                return Code.of(self.constants[expr], "b8" if expr in self.truths else "i32")
            case Name() | Element(_, ()):
                return self._scalar(expr if isinstance(expr, Name) else expr.name, axes)
            case Element():
                return self._element(expr, axes)
            case Thread():
                numbers = np.arange(self.launch.threads, dtype=np.int32)
                numbers = numbers.reshape(-1, *[1] * len(axes))
                return Code(lambda: numbers, "i32")
            case of.FirstProgram():
                return Code(lambda: np.bool_(self.block.number == 0), "b8")
        return self._operation(expr, axes)

    def _operation(self, expr: Expr, axes: Sequence[Held]) -> Code:
        def part(e: Expr) -> Code:
            return self.of(e, axes)

        match expr:
            case Apply(function, args) | of.Compute(function, args):
                return self._apply(function, [part(a) for a in args])
            case of.Converted(value, dtype) | of.Full(value, _, dtype):
                return self.cast(part(value), dtype)
            case of.Power(value, less, _, True):
                parts = [self.cast(part(e), "f32") for e in (value, less)]
                return _made(power_of_difference, parts, "f32")
            case of.Power(value, less, factor) | Exponent(of.Power(value, less, factor, False)):
                parts = [part(value), part(less), *([part(factor)] if factor is not None else [])]
                parts = [self.cast(p, "f32") for p in parts]
                made = exponent if isinstance(expr, Exponent) else power
                return _made(lambda v, s, f=None: made(v, s, f), parts, "f32")
            case Exponent(of.Power(value, less)):
                parts = [self.cast(part(e), "f32") for e in (value, less)]
                return _made(exponent_of_difference, parts, "f32")
            case PowerOfTwo(value):
                return _made(np.exp2, [part(value)], "f32")
            case of.Masked(mask, value, other):
                return self._apply("where", [self.every(mask, axes), part(value), part(other)])
            case of.Joined(reduction, onto, value, nan):
                return self._meeting(joining(reduction, nan), [part(onto), part(value)], "")
            case of.Truth(value):
                return self.cast(part(value), "b8")
            case of.Scaled(value, factor):
                return self._apply("mul", [part(value), part(factor)])
            case of.Check(at, below, equal):
                if equal is not None:
                    return self._apply("eq", [part(at), part(equal)])
                bound = part(below) if below is not None else Code.constant(0)
                return self._apply("ge" if below is None else "lt", [part(at), bound])
            case of.Term(value, stride, wide):
                first = self.cast(part(value), "i64") if wide else part(value)
                return reduce(lambda a, b: self._apply("mul", [a, b]), map(part, stride), first)
            case All(conditions):
                return self.every(conditions, axes)
            case of.Entry() | of.Ranked():
                assert self.load is not None, "set before statements are compiled"
                return self.load(expr, axes)
        return self._count(expr, axes)

    def _count(self, expr: Expr, axes: Sequence[Held]) -> Code:
        """Counts of tiles, and expressions that only the launcher computes."""
        match expr:
            case of.Tiles(size, tile):
                above = self._apply("add", [self.of(size, axes), Code.constant(tile - 1)])
                return self._apply("floordiv", [above, Code.constant(tile)])
            case of.Outer(number, group):
                return self._apply("floordiv", [self.of(e, axes) for e in (number, group)])
            case of.FromEnd(count, number):
                last = self._apply("sub", [self.of(count, axes), Code.constant(1)])
                return self._apply("sub", [last, self.of(number, axes)])
            case of.BlockWidth() | of.Even() | of.Bits():
                own = Name("value", "constant")
                found = constants((*self.launch.constants, (own, expr)), self.sizes)[own]
                return Code.of(found, "b8" if isinstance(expr, of.Even) else "i32")
        raise BackendError("emit", f"a {type(expr).__name__} is no expression of single elements")

    def every(self, conditions: Sequence[Expr], axes: Sequence[Held]) -> Code:
        """The conjunction of conditions; constant where one of them decides it."""
        codes = [self.cast(self.of(c, axes), "b8") for c in conditions]
        if any(c.known is not None and not c.known for c in codes):
            return Code.constant(False)
        left = [c for c in codes if c.known is None]
        if not left:
            return Code.constant(True)
        return reduce(lambda a, b: self._apply("and", [a, b]), left)

    def sum(self, one: Code, other: Code) -> Code:
        """The sum of two; a known 0 is dropped."""
        return other if one.known == 0 else self._apply("add", [one, other])

    def cast(self, code: Code, dtype: str) -> Code:
        """A value in another dtype."""
        if code.dtype == dtype:
            return code
        return _made(lambda v: converted(v, code.dtype, dtype), [code], dtype)

    def _apply(self, function: str, args: list[Code]) -> Code:
        try:
            operation = function_of(function)
        except KeyError:
            raise BackendError("emit", f"`{function}` is no pointwise function") from None
        if function in ("and", "or"):
            for one, other in (args, args[::-1]):  # a known boolean operand may decide
                if one.known is not None and one.dtype == other.dtype == "b8":
                    return other if bool(one.known) == (function == "and") else one
        return self._meeting(operation, args, function)

    def _meeting(self, operation: Callable[..., Any], args: list[Code], function: str) -> Code:
        """An operation on operands converted to their common dtype."""
        condition = [self.cast(args[0], "b8")] if function == "where" else []
        data = args[len(condition) :]
        if function == "uniform":
            return _made(operation, [self.cast(a, "i64") for a in data], "f32")
        met = common([a.dtype for a in data], function)
        alike = [a if held_as(a.dtype) is held_as(met) else self.cast(a, met) for a in data]
        return _made(operation, [*condition, *alike], result(function, met))

    def _scalar(self, name: Name, axes: Sequence[Held]) -> Code:
        v = self.variable(name)
        if v.axes:
            raise BackendError("emit", f"`{name.stem}` has axes and is used as a scalar")
        block, shape = self.block, (self.launch.threads, *[1] * len(axes))

        def run() -> Any:
            found = block.read(v)
            return found.reshape(shape) if np.ndim(found) else found

        return Code(run, v.dtype)

    def _element(self, e: Element, axes: Sequence[Held]) -> Code:
        v, block = self.variable(e.name), self.block
        names = [a.index for a in axes]
        if len(e.axes) != len(v.axes) or not set(e.axes) <= set(names):
            raise BackendError("emit", f"`{e.name.stem}` has no element at {e.axes} of {names}")
        at = [names.index(i) for i in e.axes]
        for own, place in zip(v.axes, at, strict=True):
            require_same(f"`{e.name.stem}`", own, axes[place])
        order = (0, *(1 + n for n in np.argsort(at)))
        spread = (slice(None), *(slice(None) if n in at else None for n in range(len(axes))))
        if order == tuple(range(len(order))) and None not in spread:
            return Code(lambda: block.read(v), v.dtype)
        return Code(lambda: block.read(v).transpose(order)[spread], v.dtype)

    def variable(self, name: Name) -> Variable:
        """The fragment of a name. Raises BackendError where the launch has none."""
        if name not in self.block.variables:
            raise BackendError("emit", f"{name} is no fragment of `{self.launch.name}`")
        return self.block.variables[name]


def _made(operation: Callable[..., Any], args: list[Code], dtype: str) -> Code:
    """An operation as a closure; with known operands its result is known."""
    runs = [a.run for a in args]
    if all(a.known is not None for a in args):
        return Code.of(operation(*(a.known for a in args)), dtype)
    if len(runs) == 1:
        (one,) = runs
        return Code(lambda: operation(one()), dtype)
    if len(runs) == 2:
        first, second = runs
        return Code(lambda: operation(first(), second()), dtype)
    return Code(lambda: operation(*(run() for run in runs)), dtype)
