"""Views: equations that only say where elements lie, read through by those that need them.

before: v[i, j] = x[j, i], y[i, j] = exp(v[i, j])
after:  y[i, j] = exp(x[j, i])

A padded read goes through a view only where both leave their tensors together: where the view
turns or drops dimensions, and does no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ir.spec import Apply, Bucketize, Equation, Expr, Index, Range, Read, Reduce, Scan, Spec
from ir.visit import pruned, rebuilt, renamed

SMALL = 8  # nodes of an expression without reads that is computed anew wherever it is needed


def through_views(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """The spec whose equations read through views and small constants.

    aliases: tensors that show what lies in memory under another shape: their equations stay.
    """
    views: dict[str, Equation] = {}
    made: list[Equation] = []
    for e in spec.equations:
        if e.target in aliases:
            made.append(e)
            continue
        at = tuple(_seen(p, views) for p in e.at) if e.accumulate else e.at
        e = replace(e, at=at, value=_seen(e.value, views))
        made.append(e)
        if not e.accumulate and (_is_view(e.value) or _is_constant(e.value)):
            views[e.target] = e
    return pruned(replace(spec, equations=tuple(made)))


def _is_view(value: Expr) -> bool:
    return isinstance(value, Read)


def _is_constant(value: Expr) -> bool:
    nodes = tuple(value.walk())
    heavy = any(
        isinstance(n, Read | Reduce | Scan | Bucketize)
        or (isinstance(n, Apply) and n.function == "uniform")
        for n in nodes
    )
    return not heavy and len(nodes) <= SMALL


def _seen(expr: Expr, views: Mapping[str, Equation]) -> Expr:
    """The expression with its reads of views replaced by what they show. Where a jagged range
    begins and ends is read from memory, and so is what would leave a fold without its index."""
    if isinstance(expr, Range):
        return expr
    written, expr = expr, rebuilt(expr, lambda x: _seen(x, views))
    if isinstance(expr, Reduce | Scan) and not _runs(expr):
        return written
    if not isinstance(expr, Read) or expr.tensor not in views:
        return expr
    view = views[expr.tensor]
    names = {i.name: p for i, p in zip(view.at, expr.at, strict=True)}
    if expr.pad is None:
        return renamed(view.value, names)
    if isinstance(view.value, Read) and _turns(view):
        return replace(renamed(view.value, names), pad=expr.pad)
    return expr


def _runs(expr: Reduce | Scan) -> bool:
    """Whether the body has the indices that a fold or scan runs along."""
    along = expr.over if isinstance(expr, Reduce) else (expr.along,)
    return set(along) <= {n.name for n in expr.body.walk() if isinstance(n, Index)}


def _turns(view: Equation) -> bool:
    """Whether a view's positions are its own indices, each once, in another order."""
    value = view.value
    plain = [p.name for p in value.at if isinstance(p, Index)]
    return (
        value.pad is None
        and len(plain) == len(value.at)
        and sorted(plain) == sorted(i.name for i in view.at if isinstance(i, Index))
    )
