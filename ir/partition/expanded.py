"""Inlines broadcast products of small tensors (outer products) into their only reader.

before: m[i, l, j] = s[i, j] * c[l, j],  y[i, l, j] = p[i, l, j] - m[i, l, j]
after:  y[i, l, j] = p[i, l, j] - s[i, j] * c[l, j]

The reader then reads the small operands instead of the large product. Nothing is computed twice,
because the only reader has as many elements as the product.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from ir.partition.views import is_plain, is_pointwise
from ir.recurrence import stepped
from ir.sizes import shape
from ir.spec import Equation, Index, Read, Spec
from ir.verify import facts
from ir.visit import inline

LARGEST = 12  # most nodes of an inlined expression
FEWER = 4  # least ratio of the product's elements to those of all its operands


def through_expansions(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """Inlines broadcast products of small tensors into their only reader, in a spec of literal
    sizes.

    aliases: views of other tensors' memory under another shape; their equations stay.
    """
    tensors = facts(spec).tensors
    elements = {name: prod(shape(t, {})) for name, t in tensors.items()}
    kept = {t.name for t in spec.outputs} | set(aliases)
    for e in spec.equations:
        readers = [r for r in spec.equations if e.target in r.sources()]
        if e.target in kept or len(readers) != 1 or stepped(spec, e.target) or not _small(e):
            continue
        (reader,) = readers
        reads = [r for r in reader.reads() if r.tensor == e.target]
        sources = sum(elements[s] for s in set(e.sources()))
        fits = is_plain(reader) and is_pointwise(reader.value) and not reader.accumulate
        if (
            fits
            and reader.target not in aliases
            and len(reads) == 1
            and reads[0].pad is None
            and all(isinstance(p, Index) for p in reads[0].at)
            and elements[reader.target] == elements[e.target] >= FEWER * sources
        ):
            made = replace(reader, value=inline(reader.value, e))
            equations = (made if o is reader else o for o in spec.equations if o is not e)
            spec = replace(spec, equations=tuple(equations))
    return spec


def _small(e: Equation) -> bool:
    """Whether an equation is pointwise, short, and reads several tensors without padding."""
    nodes = tuple(e.value.walk())
    reads = [n for n in nodes if isinstance(n, Read)]
    plain = is_plain(e) and not e.accumulate and is_pointwise(e.value) and len(nodes) <= LARGEST
    return plain and len(reads) > 1 and all(r.pad is None for r in reads)
