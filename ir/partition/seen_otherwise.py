"""Removes a view around a normalisation: equations over a view use the shape of its source instead.

before: v[q, s] = c[q // C, q % C, s], m[q] = max(v[q, s], s), y[q, s] = v[q, s] - m[q], z[n, o, s] = y[n * C + o, s]
after:  m[n, o] = max(c[n, o, s], s), z[n, o, s] = c[n, o, s] - m[n, o]

Here `v` is a view of `c`, and `z` one of `y`. An instance norm views the batch and channel
dimensions of a convolution as one. With this rewrite it joins the convolution's kernel, and the
equations after it join the norm.
"""

from __future__ import annotations

from collections.abc import Mapping

from ir.contraction import contraction
from ir.partition.heads import split_apart
from ir.partition.views import is_plain, is_pointwise
from ir.recurrence import stepped
from ir.spec import Equation, Reduce, Spec

MOST = 32  # equations over a view


def without_views_between(spec: Spec, aliases: Mapping[str, str]) -> tuple[Spec, dict[str, str]]:
    """Removes views around normalisations from a literal spec; returns the spec and the remaining
    aliases."""
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
    """The view and all equations over it up to other views, in the order of the spec.

    Empty if one of these equations cannot be rewritten or is an output, or if none is a reduction.
    """
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
    """Whether an equation is pointwise, or a reduction of a pointwise body."""
    if e.accumulate or not is_plain(e) or stepped(spec, e.target) or contraction(e) is not None:
        return False
    if isinstance(e.value, Reduce):
        whole = not any(r.jagged or r.partial for r in e.value.ranges)
        return whole and is_pointwise(e.value.body) and not e.value.reduction.startswith("arg")
    return is_pointwise(e.value)
