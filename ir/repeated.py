"""Repetition: equations that say the same are computed once.

before: a[i] = exp(x[i]), b[j] = exp(x[j]), y[k] = a[k] + b[k]
after:  a[i] = exp(x[i]), y[k] = a[k] + a[k]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ir.recurrence import stepped
from ir.spec import Bucketize, Equation, Expr, Index, Range, Read, Reduce, Scan, Spec
from ir.visit import pruned, rebuilt


def once(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """The spec without equations that repeat earlier ones.

    aliases: tensors that show memory under another shape; they stay, as outputs and recurrences do.
    """
    kept = {*aliases, *(t.name for t in spec.outputs)}
    first: dict[tuple[object, ...], str] = {}
    same: dict[str, str] = {}
    made = []
    for e in spec.equations:
        e = replace(e, at=tuple(_read(p, same) for p in e.at), value=_read(e.value, same))
        made.append(e)
        if e.accumulate or stepped(spec, e.target):
            continue
        found = first.setdefault(_key(e), e.target)
        if found != e.target and e.target not in kept:
            same[e.target] = found
    return pruned(replace(spec, equations=tuple(made)))


def _key(e: Equation) -> tuple[object, ...]:
    """What an equation says, whatever its indices are called."""
    names: dict[str, str] = {}
    for index in e.indices:
        names[index] = f"#{len(names)}"
    return e.sizes, _numbered(e.value, names)


def _numbered(expr: Expr, names: dict[str, str]) -> Expr:
    def name(index: str) -> str:
        return names.setdefault(index, f"#{len(names)}")

    if isinstance(expr, Index):
        return Index(name(expr.name))
    made = rebuilt(expr, lambda x: _numbered(x, names))
    if isinstance(made, Reduce):
        return replace(made, over=tuple(map(name, made.over)))
    if isinstance(made, Range):
        return replace(made, index=name(made.index))
    return replace(made, along=name(made.along)) if isinstance(made, Scan) else made


def _read(expr: Expr, same: Mapping[str, str]) -> Expr:
    """The expression with repeated tensors read where they are computed first."""
    made = rebuilt(expr, lambda x: _read(x, same))
    if isinstance(made, Read) and made.tensor in same:
        return replace(made, tensor=same[made.tensor])
    if isinstance(made, Bucketize) and made.borders in same:
        return replace(made, borders=same[made.borders])
    return made
