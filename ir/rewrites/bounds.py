"""Bounds: between which numbers an expression's value lies, and whether it is positive, as far as
its functions say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isnan, pi

from ir.dtypes import is_float
from ir.formulation.formulation import pointwise
from ir.spec import Apply, Cast, Equation, Expr, Number, Read, Reduce, Size, Spec

Interval = tuple[float, float]

EVERY: Interval = (-inf, inf)
_OF_FUNCTION = {
    "tanh": (-1.0, 1.0), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "erf": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0), "erfc": (0.0, 2.0), "atan": (-pi / 2, pi / 2), "sign": (-1.0, 1.0),
    "uniform": (0.0, 1.0), "exp": (0.0, inf), "exp2": (0.0, inf), "square": (0.0, inf),
}  # fmt: skip
_ALWAYS_POSITIVE = ("exp", "exp2", "sigmoid", "rsqrt", "cosh")
_KEEPS = ("add", "mul", "div", "minimum", "sqrt")  # positive where all operands are


def positive(spec: Spec, expr: Expr) -> bool:
    """Whether a value is more than 0 wherever it is a number. Sizes are."""
    return _Bounds(spec).positive(expr)


def interval(spec: Spec, expr: Expr) -> Interval:
    """The least and the largest value that an expression can have; infinite where not known."""
    return _Bounds(spec).interval(expr)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What was found of the tensors so far, each gone into once."""

    spec: Spec
    signs: dict[str, bool] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)

    def positive(self, expr: Expr) -> bool:
        """Whether a value is more than 0."""
        match expr:
            case Number(value):
                return value > 0
            case Size(name):
                return dict(self.spec.attributes).get(name, 1) > 0
            case Cast(dtype, value):
                return is_float(dtype) and self.positive(value)
            case Apply(name) if name in _ALWAYS_POSITIVE:
                return True
            case Apply(name, args) if name in _KEEPS:
                return all(self.positive(a) for a in args)
            case Apply("maximum", args):
                return any(self.positive(a) for a in args)
            case Apply("where", (_, a, b)):
                return self.positive(a) and self.positive(b)
            case Read(tensor, _, pad) if pad is None or pad > 0:
                if tensor not in self.signs:
                    e = _definition(self.spec, tensor)
                    self.signs[tensor] = e is not None and self.positive(e.value)
                return self.signs[tensor]
            case Reduce(fold, body, _, ranges) if fold in ("sum", "prod", "max", "min"):
                return not any(r.jagged for r in ranges) and self.positive(body)
        return False

    def interval(self, expr: Expr) -> Interval:
        """Between which numbers a value lies."""
        match expr:
            case Number(value):
                return float(value), float(value)
            case Cast(dtype, value) if is_float(dtype):
                return self.interval(value)
            case Apply(name, args) if name in _OF_INTERVALS:
                return _OF_INTERVALS[name](*map(self.interval, args))
            case Apply("where", (_, a, b)):
                return _joined(self.interval(a), self.interval(b))
            case Apply(name):
                return _OF_FUNCTION.get(name, EVERY)
            case Read(tensor, _, pad):
                if tensor not in self.intervals:
                    e = _definition(self.spec, tensor)
                    self.intervals[tensor] = EVERY if e is None else self.interval(e.value)
                found = self.intervals[tensor]
                return found if pad is None else _joined(found, (pad, pad))
            case Reduce("max" | "min", body):
                return self.interval(body)
        return EVERY


def _definition(spec: Spec, tensor: str) -> Equation | None:
    """The equation of a tensor that is computed from earlier ones; None where there is none."""
    earlier = {t.name for t in spec.inputs}
    for e in spec.equations:
        if e.target == tensor:
            whole = pointwise(e) or isinstance(e.value, Reduce)
            return e if whole and set(e.sources()) <= earlier else None
        earlier.add(e.target)
    return None


def _joined(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return EVERY if any(map(isnan, ends)) else (min(ends), max(ends))


def _quotient(a: Interval, b: Interval) -> Interval:
    return _product(a, (1 / b[1], 1 / b[0])) if b[0] > 0 or b[1] < 0 else EVERY


_OF_INTERVALS: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "neg": lambda a: (-a[1], -a[0]),
    "mul": _product,
    "div": _quotient,
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "relu": lambda a: (max(a[0], 0.0), max(a[1], 0.0)),
    "abs": lambda a: (0.0, max(abs(a[0]), abs(a[1]))),
}
