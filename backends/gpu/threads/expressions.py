"""Converts expressions of tiles into expressions of single elements.

A tile expression refers to its axes by position only. Here each axis gets its index, and operations
that move or repeat axes (spread, permute, broadcast, full) disappear: an element of a fragment is
accessed by the names of its axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import zip_longest
from typing import Any

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads.fragments import Axis
from backends.gpu.tile import CLUSTER, CONSTANTS, Name
from ir.nest.nest import Parameter
from ir.spec import Apply, Equation, Expr, Index, Number, Size
from ir.visit import rebuilt

Change = Callable[[Expr], Expr | None]
Axes = tuple[str | None, ...]  # the index of each axis; None: an axis of one element
_BOOLEAN = frozenset("lt le gt ge eq ne isnan isinf isfinite".split())
_FLOATING = frozenset(("uniform", "randn"))


class Typing:
    """The dtype and the axes of expressions in one launch."""

    def __init__(self, dtypes: Mapping[str, str]):
        self.dtypes = dtypes  # of global tensors
        self.known: dict[Name, tuple[str, Axes]] = {}  # variables

    def axes(self, expr: Expr) -> Axes:
        """The index of each axis."""
        match expr:
            case Name(sort="positions" | "mask", stem=index):
                return (index,)
            case Name():
                return self.known[expr][1] if expr in self.known else ()
            case of.Spread(value, kept):
                left = iter(self.axes(value))
                return tuple(next(left) if k else None for k in kept)
            case of.Permuted(value, order):
                inner = self.axes(value)
                return tuple(inner[i] for i in order)
            case of.Full(_, shape) | of.Broadcast(_, shape):
                missing: Axes = (None,) * len(shape)
                return met(missing, self.axes(expr.value))
            case of.Reduced(_, value, axis):
                inner = self.axes(value)
                return (*inner[:axis], *inner[axis + 1 :])
            case of.Ranked(keys):
                return self.axes(keys)
            case of.Reshaped() | of.Product():
                raise BackendError("emit", "a matmul inside an expression has no owner")
        found: Axes = ()
        for part in expr.children():
            found = met(found, self.axes(part))
        return found

    def dtype(self, expr: Expr) -> str:
        """The dtype of the elements."""
        match expr:
            case Number(value):
                return _constant(value)
            case Size(name):
                return "f32" if name.islower() else "i32"
            case Name(sort="mask"):
                return "b8"
            case Name():
                return self.known[expr][0] if expr in self.known else "i32"
            case of.Full(_, _, dtype) | of.Converted(_, dtype):
                return dtype
            case of.Truth() | of.Check() | of.FirstProgram():
                return "b8"
            case of.Compute("where", (_, a, b)) | of.Joined(_, a, b):
                return self._met(a, b)
            case of.Compute("round_tf32"):
                return "tf32"
            case of.Compute(function, args) | Apply(function, args):
                if function in _BOOLEAN:
                    return "b8"
                return "f32" if function in _FLOATING else self._met(*args)
            case of.Entry(of.Place(Name(stem=tensor))):
                return self.dtypes[tensor]
            case of.Ranked() | Index() | of.Tiles() | of.Outer() | of.FromEnd():
                return "i32"
            case of.Masked(_, value) | of.Power(value) | of.Scaled(value):
                return self.dtype(value)
            case of.Spread(value) | of.Permuted(value) | of.Broadcast(value):
                return self.dtype(value)
            case of.Reduced(_, value) | of.Scanned(_, value):
                return self.dtype(value)
        raise BackendError("emit", f"a {type(expr).__name__} has no dtype")

    def _met(self, *args: Expr) -> str:
        """The common dtype of operands; constants adopt that of the others."""
        found = [self.dtype(a) for a in args if not isinstance(a, Number | Size)]
        return found[0] if found else self.dtype(args[0])


def met(a: Axes, b: Axes) -> Axes:
    """The axes of an operation on two tensors, aligned at the last axis."""
    pairs = zip_longest(reversed(a), reversed(b))
    return tuple(x if x is not None else y for x, y in pairs)[::-1]


def leaves(expr: Expr) -> list[Name]:
    """The variables in an expression whose values may differ between threads."""
    known = (*CONSTANTS, CLUSTER, "pointer")
    return [n for n in expr.walk() if isinstance(n, Name) and n.sort not in known]


def rewritten(expr: Expr, change: Change) -> Expr:
    """An expression with its parts changed, outermost first. change: returns None to keep a node
    and continue with its parts."""
    found = change(expr)
    return rebuilt(expr, lambda e: rewritten(e, change)) if found is None else found


def changed(node: Any, change: Change, of_axis: Callable[[Axis], Axis] = lambda a: a) -> Any:
    """A value with the expressions and axes in it changed; see `rewritten`."""
    if isinstance(node, Expr):
        return rewritten(node, change)
    if isinstance(node, tuple):
        return tuple(changed(n, change, of_axis) for n in node)
    if isinstance(node, (Parameter, Equation)) or not is_dataclass(node):
        return node
    own = {f.name: getattr(node, f.name) for f in fields(node)}
    changes = {n: made for n, v in own.items() if (made := changed(v, change, of_axis)) is not v}
    made = replace(node, **changes) if changes else node  # type: ignore[type-var]
    return of_axis(made) if isinstance(made, Axis) else made


def renamed(names: Mapping[Name, Name]) -> Change:
    """A change that renames variables."""
    return lambda e: names.get(e) if isinstance(e, Name) else None


def _constant(value: float | int | bool) -> str:
    if isinstance(value, bool):
        return "b8"
    return "f32" if isinstance(value, float) else "i32"
