"""Tensors seen otherwise for a while: what is computed of a view and then viewed as before is computed as if there were none.

before: v[q, s] = c[q // C, q % C, s], m[q] = max(v[q, s], s), y[q, s] = v[q, s] - m[q], z[n, o, s] = y[n * C + o, s]
after:  m[n, o] = max(c[n, o, s], s), z[n, o, s] = c[n, o, s] - m[n, o]

where `v` shows the memory of `c`, and `z` that of `y`. So an instance norm, which sees the images and channels of a
convolution as one dimension, joins the convolution, and what follows joins the norm.
"""

from __future__ import annotations

from collections.abc import Mapping

from ir.contraction import contraction
from ir.partition.heads import split_apart
from ir.partition.views import is_plain, is_pointwise
from ir.recurrence import stepped
from ir.spec import Equation, Reduce, Spec

MOST = 32  # equations of a view


def without_views_between(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """A literal spec without such views, and the aliases that are left."""
    found = dict(aliases)
    for view in aliases:
        equations = {e.target: e for e in spec.equations}
        if view not in found or view not in equations or found[view] not in equations:
            continue
        region = _region(spec, found, view)
        made = split_apart(spec, found, region) if region else None
        if made is not None and made[1].keys() < found.keys():
            spec, found = made
    return spec, found


def _region(spec: Spec, aliases: Mapping[str, str], view: str) -> tuple[str, ...]:
    """The view, and all that is computed of it up to other views, in the order of the spec; nothing where something else
    reads that, or nothing of it is reduced."""
    inside, todo, reduced = {view}, [view], False
    while todo:
        tensor = todo.pop()
        for e in (e for e in spec.equations if tensor in e.sources()):
            if e.target in inside:
                continue
            if e.target not in aliases:
                if not _able(spec, e) or len(inside) == MOST:
                    return ()
                todo.append(e.target)
                reduced = reduced or isinstance(e.value, Reduce)
            inside.add(e.target)
    outputs = {t.name for t in spec.outputs}
    if not reduced or inside & outputs - aliases.keys():
        return ()
    return tuple(e.target for e in spec.equations if e.target in inside)


def _able(spec: Spec, e: Equation) -> bool:
    """Whether an equation is computed element by element, or reduces what is."""
    if e.accumulate or not is_plain(e) or stepped(spec, e.target) or contraction(e) is not None:
        return False
    if isinstance(e.value, Reduce):
        whole = not any(r.jagged or r.partial for r in e.value.ranges)
        return whole and is_pointwise(e.value.body) and not e.value.reduction.startswith("arg")
    return is_pointwise(e.value)
