"""Unrolls a short reduction, so that each of its terms is loaded and pipelined by itself."""

from __future__ import annotations

from dataclasses import replace

from ir.errors import KernelError
from ir.schedule import Decision
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import rebuilt

MOST = 16  # most terms of an unrolled reduction
_REDUCTIONS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def unroll(spec: Spec, decision: Decision) -> Spec:
    """Applies an `unroll` decision.

    before: a[l] = sum(x[c, l + i] * w[c, i], c, i=3)
    after:  a[l] = sum(x[c, l] * w[c, 0] + x[c, l + 1] * w[c, 1] + x[c, l + 2] * w[c, 2], c)

    Legal if every reduction over the index is a sum, product, maximum or minimum over a known
    number of values from 2 to MOST, and if no tensor that keeps the index takes its range from
    these reductions.
    """
    index = decision.subject
    found = [e for e in spec.equations if index in e.reduced]
    span = facts(spec).ranges.get(index)
    parts = any(r.index == index and r.partial for e in found for r in e.reduce.ranges)
    if not found or span is None or not terms(spec, index) or parts:
        raise KernelError(
            f"`{index}` is not reduced over a known range of at most {MOST}",
            place=decision.place,
            allowed=", ".join(i for i in facts(spec).ranges if terms(spec, i)) or "no index here",
            hint=f"drop unroll({index})",
        )
    made = replace(spec, equations=tuple(_written_out(spec, e, index) for e in spec.equations))
    _require_ranges(made, decision)
    return made


def _require_ranges(made: Spec, decision: Decision) -> None:
    """Raises KernelError if the index has no range in the remaining equations, such as the parts of
    an operand."""
    try:
        facts(made)
    except KernelError as error:
        raise KernelError(
            f"a tensor keeps `{decision.subject}`, which has its range from this reduction",
            place=decision.place,
            hint=f"drop unroll({decision.subject})",
        ) from error


def terms(spec: Spec, index: str) -> int:
    """The number of terms of a reduction over an index; 0 if it cannot be unrolled."""
    span = facts(spec).ranges.get(index)
    reductions = [e.reduce.reduction for e in spec.equations if index in e.reduced]
    if span is None or span.jagged or not isinstance(span.high, Number):
        return 0
    if not reductions or any(f not in _REDUCTIONS for f in reductions):
        return 0
    return int(span.high.value) if 1 < span.high.value <= MOST else 0


def _written_out(spec: Spec, equation: Equation, index: str) -> Equation:
    value = equation.value
    if not isinstance(value, Reduce) or index not in value.over:
        return equation
    parts = [_tap(value.body, index, n) for n in range(terms(spec, index))]
    body: Expr = parts[0]
    for part in parts[1:]:
        body = Apply(_REDUCTIONS[value.reduction], (body, part))
    over = tuple(i for i in value.over if i != index)
    ranges = tuple(r for r in value.ranges if r.index != index)
    if not over:
        return replace(equation, value=body)
    return replace(equation, value=replace(value, body=body, over=over, ranges=ranges))


def _tap(expr: Expr, index: str, number: int) -> Expr:
    """One term of a reduction, with the constants in its positions added up: x[l + 2 - 1] -> x[l +
    1]."""
    if isinstance(expr, Index):
        return Number(number) if expr.name == index else expr
    made = rebuilt(expr, lambda e: _tap(e, index, number))
    if isinstance(made, Read):
        return replace(made, at=tuple(map(_settled, made.at)))
    return made


def _settled(position: Expr) -> Expr:
    """Adds up the constants of a sum and moves them to its end; other positions are unchanged."""
    rest, number = _constant_apart(position)
    if not isinstance(position, Apply) or position.function not in ("add", "sub"):
        return position
    if rest is None or number == 0:
        return rest or Number(number)
    return Apply("add" if number > 0 else "sub", (rest, Number(abs(number))))


def _constant_apart(expr: Expr) -> tuple[Expr | None, int]:
    """Splits a sum into its part without constants (None if there is none) and the total of its
    integer constants."""
    match expr:
        case Number(int(number)):
            return None, number
        case Apply("mul", (Number(int(a)), Number(int(b)))):
            return None, a * b
        case Apply("add" | "sub" as sign, (a, b)):
            (left, first), (right, second) = _constant_apart(a), _constant_apart(b)
            total = first + second if sign == "add" else first - second
            if left is None and right is not None and sign == "sub":
                return expr, 0
            if left is None or right is None:
                return left or right, total
            return Apply(sign, (left, right)), total
    return expr, 0
