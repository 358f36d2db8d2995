"""Interval arithmetic on integers: the least and the greatest entry of integer tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isfinite, prod

from ir.dtypes import is_bool, is_float
from ir.recurrence import ordered
from ir.sizes import bind, value
from ir.spec import (
    FLOATS,
    Apply,
    Bucketize,
    Cast,
    Expr,
    Facts,
    Index,
    Number,
    Read,
    Reduce,
    Scan,
    Size,
    Spec,
    Tensor,
)
from ir.verify import facts

Interval = tuple[float, float]  # the least and the greatest value

EVERY: Interval = (-inf, inf)
_TRUTH: Interval = (0, 1)
_TRUE_OR_FALSE = ("lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf", "isfinite")


def ranged(spec: Spec) -> Facts:
    """The facts of a literal spec, with the value ranges that equations imply for computed integer
    tensors."""
    known, found = facts(spec), Intervals(spec, {})
    tensors = dict(known.tensors)
    for e in spec.equations:
        low, high = found.tensors.get(e.target, EVERY)
        dtype = tensors[e.target].dtype
        if isfinite(low) and isfinite(high) and not is_float(dtype) and not is_bool(dtype):
            ends = (Number(int(low)), Number(int(high) + 1))
            tensors[e.target] = replace(tensors[e.target], range=ends)
    return replace(known, tensors=tensors)


def limits(tensor: Tensor) -> Interval:
    """The interval that a float tensor declares."""
    ends = [end.value for end in tensor.range if isinstance(end, Number)]
    return (ends[0], ends[1]) if ends else EVERY


def of_tensor(tensor: Tensor, sizes: Mapping[str, float]) -> Interval:
    """The interval that a tensor declares."""
    if is_bool(tensor.dtype):
        return _TRUTH
    if not tensor.range or is_float(tensor.dtype):
        return (0, 255) if tensor.dtype == "u8" else EVERY
    low, high = (value(end, sizes) for end in tensor.range)
    return (low, high - 1)


class Intervals:
    """The intervals of one spec at one set of sizes."""

    def __init__(self, spec: Spec, sizes: Mapping[str, int]):
        self.sizes = {**bind(spec, sizes), **dict(spec.attributes)}
        self.facts = facts(spec)
        # Of inputs and of integer tensors; others are unbounded.
        self.tensors = {t.name: of_tensor(t, self.sizes) for t in spec.inputs}
        for e in ordered(spec):
            kind = self.facts.tensors[e.target].dtype
            if kind not in FLOATS and not e.accumulate:
                self.tensors[e.target] = self._held(self.of(e.value), kind)

    def of(self, expr: Expr) -> Interval:
        """The interval of an integer expression; (-inf, inf) if it can be a float."""
        match expr:
            case Number(number):
                return (number, number) if float(number).is_integer() else EVERY
            case Size(name):
                return self.of(Number(self.sizes[name]))
            case Index(name):
                return (0, max(0, self._extent(name) - 1))
            case Read(tensor, _, pad):
                found = self.tensors.get(tensor, EVERY)
                return found if pad is None else union(found, self.of(Number(pad)))
            case Cast(dtype, inner):
                return EVERY if is_float(dtype) else self._held(self.of(inner), dtype)
            case Bucketize(_, borders):
                return (0, value(self.facts.tensors[borders].shape[0], self.sizes))
            case Apply(function, args):
                return _applied(function, [self.of(a) for a in args])
            case Reduce():
                return self._reduced(expr)
            case Scan(reduction, body, along, _, exclusive):
                low, high = self.of(body)
                if reduction == "sum":
                    return (min(0, low) * self._extent(along), max(0, high) * self._extent(along))
                return EVERY if exclusive or reduction == "prod" else (low, high)
        return EVERY

    def _reduced(self, expr: Reduce) -> Interval:
        if expr.reduction in ("any", "all"):
            return _TRUTH
        count = prod(self._extent(i) for i in expr.over)
        if expr.reduction.startswith("arg"):
            return (0, count - 1)
        low, high = self.of(expr.body)
        if expr.reduction == "sum":
            return (_times(min(0, low), count), _times(max(0, high), count))
        return (low, high) if expr.reduction in ("max", "min") and isfinite(count) else EVERY

    def _extent(self, index: str) -> float:
        found = self.facts.ranges.get(index)
        return inf if found is None or found.jagged else value(found.high, self.sizes)

    def _held(self, found: Interval, dtype: str) -> Interval:
        """An interval after conversion to a dtype.

        It is unchanged if the dtype surely holds all of it, else all values of the dtype, as
        integers wrap.
        """
        ends = {"b8": _TRUTH, "u8": (0, 255), "i8": (-128, 127), "i16": (-(2**15), 2**15 - 1)}
        low, high = ends.get(dtype, (-(2**31), 2**31 - 1))
        return found if low <= found[0] and found[1] <= high else ends.get(dtype, EVERY)


def _applied(function: str, args: list[Interval]) -> Interval:
    match function, args:
        case "add", [(a, b), (c, d)]:
            return (a + c, b + d)
        case "sub", [(a, b), (c, d)]:
            return (a - d, b - c)
        case "neg", [(a, b)]:
            return (-b, -a)
        case "mul", [(a, b), (c, d)]:
            ends = [_times(x, y) for x in (a, b) for y in (c, d)]
            return (min(ends), max(ends))
        case "floordiv", [(a, b), (c, d)] if c == d and 0 < c < inf:
            return (_divided(a, c), _divided(b, c))
        case "mod", [_, (c, d)] if c == d and 0 < c < inf:
            return (0, c - 1)
        case "minimum", [(a, b), (c, d)]:
            return (min(a, c), min(b, d))
        case "maximum", [(a, b), (c, d)]:
            return (max(a, c), max(b, d))
        case "where", [_, first, second]:
            return union(first, second)
        case "abs", [(a, b)]:
            return (0 if a <= 0 <= b else min(abs(a), abs(b)), max(abs(a), abs(b)))
        case "relu", [(a, b)]:
            return (max(a, 0), max(b, 0))
        case "and" | "or" | "xor" | "not", _ if all(a == _TRUTH for a in args):
            return _TRUTH
        case "and", [(a, b), (c, d)] if a >= 0 or c >= 0:
            return (0, min(x for low, x in ((a, b), (c, d)) if low >= 0))
    return _TRUTH if function in _TRUE_OR_FALSE else EVERY


def union(a: Interval, b: Interval) -> Interval:
    """The least interval that contains both."""
    return (min(a[0], b[0]), max(a[1], b[1]))


def _times(a: float, b: float) -> float:
    return 0 if 0 in (a, b) else a * b


def _divided(a: float, by: float) -> float:
    return a // by if isfinite(a) else a
