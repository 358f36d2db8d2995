"""Masks: the constant that an expression takes if one index is on one side of another."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ir.affine import affine, fold_constants
from ir.spec import Apply, Cast, Equation, Expr, Number, Read, Spec
from ir.variant.bounds import positive_scalar
from ir.variant.variant import pointwise
from ir.visit import renamed

_FLIPPED = {"ge": "lt", "gt": "le"}
Known = float | bool | None  # None: not known


def borders(spec: Spec, expr: Expr, index: str, at: str) -> tuple[Expr, ...]:
    """The offsets c at which a comparison in the expression separates positions of `index` around
    `at + c`.

    The comparison separates index <= at + c from index > at + c, or index < at + c from index >= at
    + c. Known numbers come first, in ascending order.
    """
    found: dict[Expr, None] = {}
    for node in _walk(expr, {e.target: e for e in spec.equations if pointwise(e)}):
        for border in _sides(node, index, at):
            found[border[0]] = None
    return tuple(sorted(found, key=lambda c: c.value if isinstance(c, Number) else math.inf))


def masked_at(spec: Spec, index: str) -> tuple[str, ...]:
    """The indices at which masks divide every reduction over an index, so that they can bound its
    loops."""
    bodies = {e.target: e.reduce.body for e in spec.equations if index in e.reduced}
    first = next((e.indices for e in spec.equations if e.target in bodies), ())
    return tuple(
        at for at in first if all(borders(spec, body, index, at) for body in bodies.values())
    )


def beyond(spec: Spec, expr: Expr, index: str, at: str, offset: Expr, side: str) -> Known:
    """The constant that an expression has for every index > at + offset (`above`) or every index <
    at + offset (`below`).

    None if it can vary. Unknown values are assumed to be finite, as they are for finite inputs.
    """
    made = {e.target: e for e in spec.equations if pointwise(e)}
    return _Beyond(made, index, at, offset, side).of(expr)


class _Beyond:
    """Evaluates expressions on one side of a border."""

    def __init__(self, made: Mapping[str, Equation], index: str, at: str, offset: Expr, side: str):
        self.made, self.index, self.at = made, index, at
        self.offset, self.side = offset, side

    def of(self, expr: Expr) -> Known:
        """The constant that an expression has on this side; None if it can vary."""
        match expr:
            case Number(value):
                return value
            case Cast(_, value):
                return self.of(value)
            case Read(tensor, _, None) if tensor in self.made:
                return self.of(_inner(expr, self.made[tensor]))
            case Apply(function, args):
                known = self._compared(expr)
                return self._apply(function, args) if known is None else known
        return None

    def _compared(self, expr: Apply) -> Known:
        """The truth of a comparison of the two indices on this side; None if it varies."""
        for border, side, holds in _sides(expr, self.index, self.at):
            if side == self.side and _reaches(self.offset, border, side):
                return holds
        return None

    def _apply(self, function: str, args: tuple[Expr, ...]) -> Known:
        known = [self.of(a) for a in args]
        one, *others = known
        match function:
            case "where":
                return None if one is None else others[0] if one else others[1]
            case "and" | "or":
                decides = function == "or"
                if decides in known:
                    return decides
                return None if None in known else not decides
            case "not":
                return None if one is None else not one
            case "neg":
                return None if one is None else -one
            case "add":
                return _sum(one, others[0])
            case "sub":
                return _sum(one, None if others[0] is None else -others[0])
            case "mul":
                return self._product(args, known)
            case "div":
                # 0 / x is 0 for finite x != 0; infinity keeps its sign over a positive divisor.
                kept = one == 0 or (one in (math.inf, -math.inf) and positive_scalar(args[1]))
                return one if kept and known[1] is None else None
            case "exp" | "relu" | "sigmoid":
                return 0.0 if one == -math.inf else None
        return None

    def _product(self, args: tuple[Expr, ...], known: list[Known]) -> Known:
        if 0 in known:
            # 0 * inf is NaN, not 0.
            return None if any(k is not None and math.isinf(k) for k in known) else 0.0
        one, two = known
        if one is not None and two is not None:
            return one * two
        for k, other in ((known[0], args[1]), (known[1], args[0])):
            if k is not None and math.isinf(k) and positive_scalar(other):
                return k
        return None


def _sum(a: Known, b: Known) -> Known:
    """The sum of two values; an infinite value absorbs an unknown finite one."""
    infinite = [x for x in (a, b) if x is not None and math.isinf(x)]
    if len(set(infinite)) == 1:
        return infinite[0]
    return None if infinite or a is None or b is None else a + b


def _sides(expr: Expr, index: str, at: str) -> tuple[tuple[Expr, str, bool], ...]:
    """Both sides of a comparison's border: (offset, side, whether the comparison holds there)."""
    if not isinstance(expr, Apply) or expr.function not in ("lt", "le", "gt", "ge"):
        return ()
    form = affine(Apply("sub", expr.args))
    if form is None or {i for i, _ in form.terms} != {index, at}:
        return ()
    c = form.coefficient(index)
    if abs(c) != 1 or form.coefficient(at) != -c:
        return ()
    strict, flipped = expr.function in ("lt", "ge"), expr.function in _FLIPPED
    # c * (index - at) + offset  <  or  <=  0, or (flipped) its opposite
    offset = form.offset if c < 0 else _negated(form.offset)
    if c > 0:  # index <= at + offset, or < : beyond is above
        last = fold_constants("add", offset, Number(-1)) if strict else offset
        first = fold_constants("add", last, Number(1))
        return ((last, "above", flipped), (first, "below", not flipped))
    # at - index + offset <(=) 0: index >= at + offset, or >
    first = fold_constants("add", offset, Number(1)) if strict else offset
    last = fold_constants("add", first, Number(-1))
    return ((first, "below", flipped), (last, "above", not flipped))


def _negated(offset: Expr) -> Expr:
    if isinstance(offset, Apply) and offset.function == "mul" and offset.args[0] == Number(-1):
        return offset.args[1]
    return fold_constants("mul", Number(-1), offset)


def _reaches(offset: Expr, border: Expr, side: str) -> bool:
    """Whether every position on that side of `offset` is also on that side of `border`."""
    if isinstance(offset, Number) and isinstance(border, Number):
        return border.value <= offset.value if side == "above" else border.value >= offset.value
    return offset == border


def _walk(expr: Expr, made: Mapping[str, Equation]):
    """The nodes of an expression and of the pointwise tensors that it reads."""
    for node in expr.walk():
        yield node
        if isinstance(node, Read) and node.tensor in made and node.pad is None:
            yield from _walk(_inner(node, made[node.tensor]), made)


def _inner(read: Read, equation: Equation) -> Expr:
    """The right side of an equation at the positions of a read."""
    names = dict(zip(equation.indices, read.at, strict=True))
    return renamed(equation.value, names)
