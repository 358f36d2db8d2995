"""Inlines views, equations that only index another tensor, into their readers.

before: v[i, j] = x[j, i], y[i, j] = exp(v[i, j])
after:  y[i, j] = exp(x[j, i])

A padded read is inlined only through a view that permutes dimensions and does no more: only then
are both out of bounds at the same positions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from ir.spec import Apply, Bucketize, Equation, Expr, Index, Number, Range, Read, Reduce, Scan, Spec
from ir.visit import pruned, rebuilt, renamed

SMALL = 8  # most nodes of an expression without reads that each reader recomputes


def through_views(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """Inlines views and small constants into their readers.

    aliases: views of other tensors' memory under another shape; their equations stay.
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


def is_pointwise(value: Expr) -> bool:
    """Whether each element is computed independently, and deterministically."""
    return not any(
        isinstance(n, Reduce | Scan | Bucketize) or isinstance(n, Apply) and n.function == "uniform"
        for n in value.walk()
    )


def is_plain(e: Equation) -> bool:
    """Whether an equation's positions are distinct plain indices, one for each dimension."""
    return len(e.indices) == len(e.at) == len(set(e.indices))


def root(tensor: str, aliases: Mapping[str, str]) -> str:
    """The tensor in memory that an alias shows, or the tensor itself if it is no alias."""
    while tensor in aliases:
        tensor = aliases[tensor]
    return tensor


def fresh(stem: str, taken: set[str]) -> str:
    """Takes a name that is free: the stem, or the stem with a number."""
    name, n = stem, 1
    while name in taken:
        n += 1
        name = f"{stem}_{n}"
    taken.add(name)
    return name


def _is_constant(value: Expr) -> bool:
    nodes = tuple(value.walk())
    reads = any(isinstance(n, Read) for n in nodes)
    return not reads and len(nodes) <= SMALL and is_pointwise(value)


def _seen(expr: Expr, views: Mapping[str, Equation]) -> Expr:
    """Replaces reads of views by their definitions.

    The bounds of a jagged range stay reads of memory. A reduction or scan whose body would lose its
    index stays unchanged.
    """
    if isinstance(expr, Range):
        return expr
    written, expr = expr, rebuilt(expr, lambda x: _seen(x, views))
    if isinstance(expr, Reduce | Scan) and not _runs(expr):
        return written
    if not isinstance(expr, Read) or expr.tensor not in views:
        return expr
    view = views[expr.tensor]
    names = dict(zip(view.indices, expr.at, strict=True))
    if expr.pad is None:
        return renamed(view.value, names)
    if view.value == Number(expr.pad):
        return view.value  # in bounds and out of bounds
    if isinstance(view.value, Read) and _turns(view, view.value):
        return replace(cast(Read, renamed(view.value, names)), pad=expr.pad)
    return expr


def _runs(expr: Reduce | Scan) -> bool:
    """Whether the body still has the indices of the reduction or scan."""
    along = expr.over if isinstance(expr, Reduce) else (expr.along,)
    return set(along) <= {n.name for n in expr.body.walk() if isinstance(n, Index)}


def _turns(view: Equation, value: Read) -> bool:
    """Whether a view is a permutation: its positions are its own indices, each once."""
    plain = [p.name for p in value.at if isinstance(p, Index)]
    return (
        value.pad is None
        and len(plain) == len(value.at)
        and sorted(plain) == sorted(i.name for i in view.at if isinstance(i, Index))
    )
