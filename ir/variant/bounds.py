"""Interval arithmetic on expressions: the bounds of a value, and whether it is positive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isnan, pi

from ir.dtypes import is_float
from ir.intervals import EVERY, Interval, limits, union
from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Read, Reduce, Size, Spec
from ir.variant.variant import pointwise
from ir.verify import facts
from ir.visit import inline, renamed

# The largest number of each float with a smaller range than f32.
LARGEST = {"f16": 65504.0, "f8e5m2": 57344.0, "f8e4m3": 448.0}
_OF_FUNCTION = {
    "tanh": (-1.0, 1.0),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "erf": (-1.0, 1.0),
    "sigmoid": (0.0, 1.0),
    "erfc": (0.0, 2.0),
    "atan": (-pi / 2, pi / 2),
    "sign": (-1.0, 1.0),
    "uniform": (0.0, 1.0),
    "exp": (0.0, inf),
    "exp2": (0.0, inf),
    "square": (0.0, inf),
}
_ALWAYS_POSITIVE = ("exp", "exp2", "sigmoid", "rsqrt", "cosh")
_ADDING = ("add", "sub", "minimum", "maximum")
_KEEPS = ("add", "mul", "div", "minimum", "sqrt")  # positive if all operands are


def positive(spec: Spec, expr: Expr) -> bool:
    """Whether a value is greater than 0 wherever it is not NaN. Sizes are."""
    return _Bounds(spec).positive(expr)


def positive_scalar(expr: Expr) -> bool:
    """Whether an expression without tensor reads is greater than 0 at all sizes.

    A read can have any sign, so an expression that depends on one does not qualify. Sizes (upper
    case) are at least 1; attributes (lower case) can have any sign.
    """
    return _positive_node(expr, str.isupper, positive_scalar)


def reaches_ends(operation: Expr) -> bool:
    """Whether an operation can move values far from the ends of the f32 range close to them.

    It adds, as a mask adds the lowest number, or it selects a number other than -inf instead of a
    value.
    """
    match operation:
        case Apply("where", (_, _, other)):
            return other != Number(-inf)
        case Apply(function):
            return function in _ADDING
    return False


def _positive_node(
    expr: Expr, size: Callable[[str], bool], operand: Callable[[Expr], bool]
) -> bool:
    """Whether a node that is no tensor read is greater than 0.

    size: whether a named size is greater than 0.
    operand: whether an operand of the node is.
    """
    match expr:
        case Number(value):
            return value > 0
        case Size(name):
            return size(name)
        case Cast(dtype, value):
            return is_float(dtype) and operand(value)
        case Apply(name) if name in _ALWAYS_POSITIVE:
            return True
        case Apply(name, args) if name in _KEEPS:
            return all(map(operand, args))
        case Apply("maximum", args):
            return any(map(operand, args))
        case Apply("where", (_, a, b)):
            return operand(a) and operand(b)
    return False


def interval(spec: Spec, expr: Expr) -> Interval:
    """The bounds of an expression's value in exact arithmetic; infinite if they are unknown."""
    return _Bounds(spec).interval(expr)


def held_interval(spec: Spec, expr: Expr) -> Interval:
    """The same, but tensors and casts of narrow floats are clamped to the range of their format."""
    return _Bounds(spec, held=True).interval(expr)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of one spec's expressions, with a memo per tensor."""

    spec: Spec
    held: bool = False  # clamp to the range of narrow floats, see `held_interval`
    signs: dict[str, bool] = field(default_factory=dict)  # by tensor: whether it is positive
    intervals: dict[str, Interval] = field(default_factory=dict)  # by tensor

    def positive(self, expr: Expr) -> bool:
        """Whether a value is greater than 0."""
        match expr:
            case Read(tensor, _, pad) if pad is None or pad > 0:
                if tensor not in self.signs:
                    e = _definition(self.spec, tensor)
                    least = self._declared(tensor)[0]
                    self.signs[tensor] = least > 0 if e is None else self.positive(e.value)
                return self.signs[tensor]
            case Reduce(reduction, body, _, ranges) if reduction in ("sum", "prod", "max", "min"):
                return not any(r.jagged for r in ranges) and self.positive(body)
        return _positive_node(expr, self._positive_size, self.positive)

    def _positive_size(self, name: str) -> bool:
        return dict(self.spec.attributes).get(name, 1) > 0

    def interval(self, expr: Expr) -> Interval:
        """The least and the greatest value of an expression."""
        match expr:
            case Number(value):
                return float(value), float(value)
            case Cast(dtype, value) if is_float(dtype):
                return self._within(self.interval(value), dtype)
            # `exp(f - max(f))` is in [0, 1], which the intervals of f and max(f) alone do not show.
            case Apply("exp" | "exp2", (Apply("sub", (a, b)),)) if self.held and self._tops(b, a):
                return 0.0, 1.0
            case Apply(name, args) if name in _OF_INTERVALS:
                return _OF_INTERVALS[name](*map(self.interval, args))
            case Apply("where", (_, a, b)):
                return union(self.interval(a), self.interval(b))
            case Apply(name):
                return _OF_FUNCTION.get(name, EVERY)
            case Read(tensor, _, pad):
                if tensor not in self.intervals:
                    self.intervals[tensor] = self._tensor(tensor)
                found = self.intervals[tensor]
                return found if pad is None else union(found, (pad, pad))
            case Reduce("max" | "min", body):
                return self.interval(body)
        return EVERY

    def _tensor(self, name: str) -> Interval:
        e = _definition(self.spec, name)
        found = self._declared(name) if e is None else self.interval(e.value)
        return self._within(found, facts(self.spec).tensors[name].dtype) if self.held else found

    def _declared(self, name: str) -> Interval:
        """The bounds that the spec declares for a float input."""
        found = (t for t in self.spec.inputs if t.name == name and is_float(t.dtype))
        return next(map(limits, found), EVERY)

    def _within(self, found: Interval, dtype: str) -> Interval:
        """The bounds of a value after it is rounded to a dtype."""
        if not self.held or dtype not in LARGEST:
            return found
        most = LARGEST[dtype]
        return max(found[0], -most), min(found[1], most)

    def _tops(self, top: Expr, value: Expr) -> bool:
        """Whether `top` is the maximum of `value` over some of its indices."""
        if not isinstance(top, Read) or top.pad is not None:
            return False
        e = _definition(self.spec, top.tensor)
        if e is None or not isinstance(e.value, Reduce) or e.value.reduction != "max":
            return False
        if e.value.ranges or not all(isinstance(i, Index) for i in (*e.at, *top.at)):
            return False
        own = dict(zip(e.indices, top.at, strict=True))
        return self._whole(renamed(e.value.body, own)) == self._whole(value)

    def _whole(self, expr: Expr) -> Expr:
        """The expression with the pointwise tensors that it reads inlined, so that equal ones
        compare equal."""
        for e in reversed(self.spec.equations):
            if pointwise(e):
                expr = inline(expr, e)
        return expr


def _definition(spec: Spec, tensor: str) -> Equation | None:
    """The equation of a tensor that depends on earlier tensors only.

    None for inputs, scans, scatters and recurrences, whose bounds are not computed.
    """
    earlier = {t.name for t in spec.inputs}
    for e in spec.equations:
        if e.target == tensor:
            whole = pointwise(e) or isinstance(e.value, Reduce)
            return e if whole and set(e.sources()) <= earlier else None
        earlier.add(e.target)
    return None


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
