"""Inlines a pointwise equation as the prologue of a reduction over windows that do not overlap.

before: r[n, y, x] = relu(a[n, y, x] * s[n]),  t[n, p, q] = sum(r[n, 2*p + i, 2*q + j], i, j)
after:  t[n, p, q] = sum(relu(a[n, 2*p + i, 2*q + j] * s[n]), i, j)

Each element is read once, so nothing is computed twice, and `r` is never stored. The epilogue of a
contraction stays with the contraction, as its elements are on the chip there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ir.affine import affine
from ir.contraction import contraction
from ir.partition.views import is_plain, is_pointwise, root
from ir.recurrence import stepped
from ir.sizes import shape, value
from ir.spec import Equation, Reduce, Spec
from ir.verify import facts
from ir.visit import inline

LARGEST = 24  # most nodes of an inlined expression


def with_prologues(spec: Spec, aliases: Mapping[str, str]) -> Spec:
    """Inlines prologues of windowed reductions in a spec of literal sizes.

    aliases: views of other tensors' memory under another shape; their equations stay.
    """
    for e in reversed(spec.equations):  # the sources of an inlined equation can be inlined, too
        readers = [r for r in spec.equations if e.target in r.sources()]
        if len(readers) == 1 and _is_prologue(spec, e, aliases) and _once(spec, readers[0], e):
            value = inline(readers[0].value, e)
            made = (
                replace(o, value=value) if o is readers[0] else o
                for o in spec.equations
                if o is not e
            )
            spec = replace(spec, equations=tuple(made))
    return spec


def _is_prologue(spec: Spec, e: Equation, aliases: Mapping[str, str]) -> bool:
    """Whether an equation is short, pointwise, and reads tensors that are in memory anyway."""
    nodes = sum(1 for _ in e.value.walk())
    kept = {t.name for t in spec.outputs} | set(aliases)
    if e.target in kept or e.accumulate or not is_plain(e) or not is_pointwise(e.value):
        return False
    if nodes > LARGEST or stepped(spec, e.target) or any(r.pad is not None for r in e.reads()):
        return False
    computed = {one.target: one for one in spec.equations}
    whole = prod(shape(facts(spec).tensors[e.target], {}))
    for source in e.sources():
        made = computed.get(root(source, aliases))
        large = prod(shape(facts(spec).tensors[source], {})) == whole
        alone = _readers(spec, source, aliases) == 1
        if large and alone and made is not None and not is_pointwise(made.value):
            return False
    return bool(e.sources())


def _readers(spec: Spec, tensor: str, aliases: Mapping[str, str]) -> int:
    """The number of equations that read a tensor in memory, through any view."""
    seen = root(tensor, aliases)
    shown = {tensor, seen} | {a for a in aliases if root(a, aliases) == seen}
    return sum(1 for e in spec.equations if e.target not in aliases and shown & set(e.sources()))


def _once(spec: Spec, reader: Equation, e: Equation) -> bool:
    """Whether a reduction reads each element of a tensor at most once, through windows."""
    if not isinstance(reader.value, Reduce) or contraction(reader) is not None:
        return False
    reads = [r for r in reader.reads() if r.tensor == e.target]
    if len(reads) != 1 or reads[0].pad is not None or reader.accumulate or not is_plain(reader):
        return False
    known = facts(spec)
    named: list[str] = []
    windowed = False
    for position in reads[0].at:
        found = affine(position)
        if found is None:
            return False
        stride = 1  # a mixed radix of indices reaches each value at most once
        for name, factor in sorted(found.terms, key=lambda term: term[1]):
            if factor < stride:
                return False
            stride = factor * value(known.ranges[name].high, {})
        windowed = windowed or len(found.terms) > 1
        named += [name for name, _ in found.terms]
    own = {*reader.indices, *reader.reduced}
    return windowed and len(named) == len(set(named)) and set(named) == own
