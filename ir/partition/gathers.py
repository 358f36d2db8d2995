"""Inlines a pointwise equation into the gathers that read it.

before: y[i, j] = x[i, j] - log(s[i]), g[i] = y[i, t[i]]
after:  g[i] = x[i, t[i]] - log(s[i])

Cross-entropy thus stores no logarithms of the classes that no target selects.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import inf, prod

from ir.partition.views import is_plain, is_pointwise
from ir.recurrence import stepped
from ir.sizes import value as number
from ir.spec import Equation, Expr, Index, Range, Read, Spec
from ir.verify import Facts, facts
from ir.visit import inline, pruned


def through_gathers(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """Inlines pointwise equations that only gathers read, in a spec of literal sizes.

    The gathers must have no more elements than the equation.

    aliases: views of other tensors' memory under another shape; their equations stay.
    """
    kept = {*aliases, *(t.name for t in spec.outputs)}
    gathered = {n.tensor for e in spec.equations for n in e.reads() if _by_data(n)}
    # Inlining one equation can leave its sources read by gathers alone.
    for e in reversed(spec.equations):
        if e.target in kept or e.target not in gathered or not _computed_anywhere(spec, e):
            continue
        known = facts(spec)
        readers = [r for r in spec.equations if e.target in r.sources()]
        most = _elements(e, known)
        if all(_gathers(r, e.target) and _elements(r, known) <= most < inf for r in readers):
            made = (
                replace(r, value=inline(r.value, e)) if r in readers else r for r in spec.equations
            )
            spec = pruned(replace(spec, equations=tuple(made)))
            gathered |= set(e.sources())
    return spec


def _computed_anywhere(spec: Spec, e: Equation) -> bool:
    """Whether an equation's element can be computed where it is read."""
    return (
        is_plain(e) and is_pointwise(e.value) and not e.accumulate and not stepped(spec, e.target)
    )


def _by_data(read: Read) -> bool:
    """Whether a read is a gather: its position reads another tensor."""
    return any(isinstance(x, Read) for p in read.at for x in p.walk())


def _gathers(e: Equation, tensor: str) -> bool:
    """Whether an equation reads a tensor by gathers only."""
    places: list[Expr] = [*e.at, *(n for n in e.value.walk() if isinstance(n, Range))]
    if any(n.tensor == tensor for p in places for n in p.walk() if isinstance(n, Read)):
        return False
    found = [n for n in e.reads() if n.tensor == tensor]
    return all(n.pad is None and _by_data(n) for n in found)


def _elements(e: Equation, known: Facts) -> float:
    """How often the right side is evaluated; infinity if the range of an index depends on data."""
    names = {n.name for part in (*e.at, e.value) for n in part.walk() if isinstance(n, Index)}
    ranges = [known.ranges[n] for n in names]
    return inf if any(r.jagged for r in ranges) else prod(number(r.high, {}) for r in ranges)
