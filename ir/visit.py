"""Traversals: rebuild expressions and specs with parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ir.spec import Bucketize, Equation, Expr, Index, Range, Read, Reduce, Scan, Spec


def rebuilt(expr: Expr, visit: Callable[[Expr], Expr]) -> Expr:
    """The node with `visit` applied to its children."""
    changes: dict[str, Any] = {}
    for name in expr.__dataclass_fields__:
        field = getattr(expr, name)
        if isinstance(field, Expr):
            changes[name] = visit(field)
        elif isinstance(field, tuple) and any(isinstance(f, Expr) for f in field):
            changes[name] = tuple(visit(f) for f in field)
    return replace(expr, **changes) if changes else expr


def renamed(expr: Expr, names: Mapping[str, Expr]) -> Expr:
    """The expression with indices replaced by expressions."""
    if isinstance(expr, Index):
        return names.get(expr.name, expr)
    return rebuilt(expr, lambda e: renamed(e, names))


def reindexed(expr: Expr, name: Callable[[str], str]) -> Expr:
    """The expression with its indices renamed, in reductions, scans and ranges too."""
    if isinstance(expr, Index):
        return replace(expr, name=name(expr.name))
    made = rebuilt(expr, lambda e: reindexed(e, name))
    match made:
        case Reduce():
            return replace(made, over=tuple(map(name, made.over)))
        case Range():
            return replace(made, index=name(made.index))
        case Scan():
            return replace(made, along=name(made.along))
    return made


def rereading(expr: Expr, tensors: Mapping[str, str]) -> Expr:
    """The expression with reads of some tensors replaced by reads of others."""
    made = rebuilt(expr, lambda e: rereading(e, tensors))
    if isinstance(made, Read) and made.tensor in tensors:
        return replace(made, tensor=tensors[made.tensor])
    if isinstance(made, Bucketize) and made.borders in tensors:
        return replace(made, borders=tensors[made.borders])
    return made


def transposed(expr: Expr, tensor: str, to: str, order: tuple[int, ...]) -> Expr:
    """The expression with reads of a tensor replaced by reads of `to`, their positions permuted."""
    made = rebuilt(expr, lambda e: transposed(e, tensor, to, order))
    if isinstance(made, Read) and made.tensor == tensor:
        return replace(made, tensor=to, at=tuple(made.at[d] for d in order))
    return made


def inline(expr: Expr, equation: Equation) -> Expr:
    """The expression with reads of the equation's target replaced by its right side.

    Padded reads stay.
    """
    if isinstance(expr, Read) and expr.tensor == equation.target and expr.pad is None:
        names = dict(zip(equation.indices, expr.at, strict=True))
        return renamed(equation.value, names)
    return rebuilt(expr, lambda e: inline(e, equation))


def reordered(spec: Spec, tensor: str, order: tuple[int, ...], to: str = "") -> Spec:
    """The spec with the dimensions of a computed tensor permuted.

    to: a copy in that order, which all equations read instead; the tensor itself stays.
    """
    made = []
    for e in spec.equations:
        at = tuple(transposed(p, tensor, to or tensor, order) for p in e.at)
        value, sizes = transposed(e.value, tensor, to or tensor, order), e.sizes
        if e.target == tensor:
            at = tuple(at[d] for d in order)
            sizes = tuple(sizes[d] for d in order) if sizes else ()
        made.append(replace(e, at=at, value=value, sizes=sizes))
    return replace(spec, equations=tuple(made))


def pruned(spec: Spec) -> Spec:
    """The spec without equations that no output needs."""
    needed, before = {t.name for t in spec.outputs}, None
    # Repeated, as equations of a recurrence need later ones.
    while before != (before := len(needed)):
        for e in reversed(spec.equations):
            if e.target in needed:
                needed.update(e.sources())
    return replace(spec, equations=tuple(e for e in spec.equations if e.target in needed))
