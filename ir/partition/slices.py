"""Lets a kernel read a tensor as a slice of a larger one.

before: y[n, c, h] = relu(x[n, c, h])            x: [8, 32, 49]
after:  y[n, c, h] = relu(x[n, c + 64, h])       x: [8, 128, 49], of which the tensor is 64..96 along `c`

If a kernel concatenated such slices in their order, it reads the larger tensor instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from ir.affine import affine
from ir.partition.canonical import without_sizes
from ir.sizes import shape
from ir.sizes import value as number
from ir.spec import (
    Apply,
    Bucketize,
    Equation,
    Expr,
    Facts,
    Index,
    Number,
    Part,
    Range,
    Read,
    Reduce,
    Spec,
)
from ir.verify import facts
from ir.visit import rebuilt


def read_from(spec: Spec, name: str, part: Part) -> Spec | None:
    """Replaces the input `name` of a literal spec by the larger tensor of which it is a part.

    None if the input is read out of bounds along the sliced dimension, or as a sorted table.
    """
    known = facts(spec)
    at = next(n for n, t in enumerate(spec.inputs) if t.name == name)
    inputs, larger = list(spec.inputs), replace(spec.inputs[at], part=part)
    inputs[at] = replace(larger, shape=larger.memory, part=None)
    static = {i: r for i, r in known.ranges.items() if not r.jagged and not r.partial}
    sizes = {i: number(r.high, {}) for i, r in static.items()}
    moved = _Moved(name, part, shape(spec.inputs[at], {}), sizes)
    whole = {i: (0, n) for i, n in sizes.items()}
    try:
        values = [moved.visit(e.value, whole) for e in spec.equations]
    except _Outside:
        return None
    if any(e.accumulate and name in e.sources() for e in spec.equations):
        return None
    made = (
        _written(replace(e, value=value), known)
        for e, value in zip(spec.equations, values, strict=True)
    )
    return without_sizes(replace(spec, inputs=tuple(inputs), equations=tuple(made)))


def as_one(spec: Spec, name: str, other: str) -> Spec:
    """Replaces one input of a literal spec by another input that is the same tensor."""
    known = facts(spec)

    def visit(expr: Expr) -> Expr:
        made = rebuilt(expr, visit)
        if isinstance(made, Read) and made.tensor == other:
            return replace(made, tensor=name)
        match made:
            case Apply("where", (_, one, two)) if one == two:
                return one
        return made

    equations = tuple(_written(replace(e, value=visit(e.value)), known) for e in spec.equations)
    inputs = tuple(t for t in spec.inputs if t.name != other)
    return without_sizes(replace(spec, inputs=inputs, equations=equations))


def _written(e: Equation, known: Facts) -> Equation:
    """Writes the sizes and ranges of an equation out, as its reads may not determine them any
    more."""
    value = e.value
    if isinstance(value, Reduce):
        own = {r.index: r for r in value.ranges}
        ranges = (own.get(i) or Range(i, Number(0), known.ranges[i].high) for i in value.over)
        value = replace(value, ranges=tuple(ranges))
    return replace(e, value=value, sizes=() if e.accumulate else known.tensors[e.target].shape)


class _Outside(Exception):
    """A read can be out of the part's bounds."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """Shifts the reads of a tensor to its part of a larger one."""

    name: str
    part: Part
    own: tuple[int, ...]  # the shape of the tensor
    sizes: Mapping[str, int]  # by index whose range starts at 0: its extent

    def visit(self, expr: Expr, bounds: Mapping[str, tuple[int, int]]) -> Expr:
        """Shifts the reads of an expression.

        bounds: by index, the first value and the end of the range in which the expression is used.
        """
        match expr:
            case Apply("where", (Apply("lt", (Index(i), Number(cut))) as below, one, two)) if (
                i in bounds
            ):
                (low, high), at = bounds[i], int(cut)
                first = self.visit(one, {**bounds, i: (low, min(high, at))})
                second = self.visit(two, {**bounds, i: (max(low, at), high)})
                return replace(expr, args=(below, first, second))
        made = rebuilt(expr, lambda part: self.visit(part, bounds))
        if isinstance(made, Bucketize) and made.borders == self.name:
            raise _Outside
        return self.read(made, bounds) if _reads(made, self.name) else made

    def read(self, read: Read, bounds: Mapping[str, tuple[int, int]]) -> Read:
        """Shifts one read."""
        axis, at = self.part.axis, list(read.at)
        if read.pad is not None and not _lies(at[axis], bounds, self.own[axis]):
            raise _Outside
        at[axis] = _plus(at[axis], self.part.first)
        whole, sizes = {i: (0, n) for i, n in self.sizes.items()}, list(self.own)
        sizes[axis] = self.part.whole
        certain = all(_lies(p, whole, n) for p, n in zip(at, sizes, strict=True))
        return replace(read, at=tuple(at), pad=None if certain else read.pad)


def _reads(expr: Expr, name: str) -> TypeGuard[Read]:
    return isinstance(expr, Read) and expr.tensor == name


def _lies(position: Expr, bounds: Mapping[str, tuple[int, int]], size: int) -> bool:
    """Whether a position along one index is at least 0 and less than `size`, for all values within
    bounds."""
    form = affine(position)
    if form is None or len(form.terms) != 1 or not isinstance(form.offset, Number):
        return False
    ((index, step),), by = form.terms, int(form.offset.value)
    low, high = bounds.get(index, (0, 0))
    return step == 1 and low < high and 0 <= low + by and high + by <= size


def _plus(position: Expr, by: int) -> Expr:
    """Adds a number of elements to a position."""
    form = affine(position)
    if form is not None and form.terms and isinstance(form.offset, Number):
        plain = [Index(i) if c == 1 else Apply("mul", (Number(c), Index(i))) for i, c in form.terms]
        made: Expr = plain[0]
        for term in plain[1:]:
            made = Apply("add", (made, term))
        by += int(form.offset.value)
        return made if by == 0 else Apply("add" if by > 0 else "sub", (made, Number(abs(by))))
    if isinstance(position, Number):
        return Number(int(position.value) + by)
    return Apply("add", (position, Number(by))) if by else position
