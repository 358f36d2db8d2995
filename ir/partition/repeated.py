"""Eliminates common subexpressions: drops an equation that repeats an earlier one.

before: a[i] = exp(x[i]), b[j] = exp(x[j]), y[k] = a[k] + b[k]
after:  a[i] = exp(x[i]), y[k] = a[k] + a[k]
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ir.recurrence import stepped
from ir.spec import Equation, Spec
from ir.visit import pruned, reindexed, rereading


def once(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """The spec without equations that repeat earlier ones.

    Outputs, scatters and recurrences stay.

    aliases: views of other tensors' memory under another shape, which stay as well.
    """
    kept = {*aliases, *(t.name for t in spec.outputs)}
    first: dict[tuple[object, ...], str] = {}
    same: dict[str, str] = {}
    made = []
    for e in spec.equations:
        e = replace(e, at=tuple(rereading(p, same) for p in e.at), value=rereading(e.value, same))
        made.append(e)
        if e.accumulate or stepped(spec, e.target):
            continue
        found = first.setdefault(_key(e), e.target)
        if found != e.target and e.target not in kept:
            same[e.target] = found
    return pruned(replace(spec, equations=tuple(made)))


def _key(e: Equation) -> tuple[object, ...]:
    """A key that is equal for equations that are equal up to index names."""
    names: dict[str, str] = {}
    for index in e.indices:
        names[index] = f"#{len(names)}"
    return e.sizes, reindexed(e.value, lambda i: names.setdefault(i, f"#{len(names)}"))
