"""Unroll: a short fold written out, so that each of its terms is loaded and staged by itself."""

from __future__ import annotations

from dataclasses import replace

from ir.errors import KernelError
from ir.schedule import Decision
from ir.spec import Apply, Equation, Expr, Number, Reduce, Spec
from ir.verify import facts
from ir.visit import renamed

MOST = 16  # terms that a fold is written out into
_FOLDS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def unroll(spec: Spec, decision: Decision) -> Spec:
    """before: a[l] = sum(x[c, l + i] * w[c, i], c, i=3)
    after:  a[l] = sum(x[c, l] * w[c, 0] + x[c, l + 1] * w[c, 1] + x[c, l + 2] * w[c, 2], c)

    Legal where every fold over the index is a sum, a product, a maximum or a minimum, over a
    range of a few numbers that are known.
    """
    index = decision.subject
    found = [e for e in spec.equations if index in e.reduced]
    span = facts(spec).ranges.get(index)
    parts = any(r.index == index and r.partial for e in found for r in e.value.ranges)
    if not found or span is None or not terms(spec, index) or parts:
        raise KernelError(
            f"`{index}` is not folded over a known range of at most {MOST}",
            place=decision.place,
            allowed=", ".join(i for i in facts(spec).ranges if terms(spec, i)) or "no index here",
            hint=f"drop unroll({index})",
        )
    return replace(
        spec, equations=tuple(_written_out(spec, e, index) for e in spec.equations)
    )


def terms(spec: Spec, index: str) -> int:
    """How many terms a fold over an index has, 0 where it cannot be written out."""
    span = facts(spec).ranges.get(index)
    folds = [e.value.fold for e in spec.equations if index in e.reduced]
    known = span is not None and not span.jagged and isinstance(span.high, Number)
    if not folds or not known or any(f not in _FOLDS for f in folds):
        return 0
    return span.high.value if 1 < span.high.value <= MOST else 0


def _written_out(spec: Spec, equation: Equation, index: str) -> Equation:
    value = equation.value
    if not isinstance(value, Reduce) or index not in value.over:
        return equation
    parts = [renamed(value.body, {index: Number(n)}) for n in range(terms(spec, index))]
    body: Expr = parts[0]
    for part in parts[1:]:
        body = Apply(_FOLDS[value.fold], (body, part))
    over = tuple(i for i in value.over if i != index)
    ranges = tuple(r for r in value.ranges if r.index != index)
    if not over:
        return replace(equation, value=body)
    return replace(equation, value=replace(value, body=body, over=over, ranges=ranges))
