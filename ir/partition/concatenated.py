"""Inlines pointwise operands of a concatenation into it.

before: e[n, j, k] = w[t[n, j], k]
        y[n, j, k] = where(j < 1, pad(x[n, j, k], 0.0), pad(e[n, j - 1, k], 0.0))
after:  y[n, j, k] = where(j < 1, pad(x[n, j, k], 0.0), where(j >= 1, w[pad(t[n, j - 1], 0), k], 0.0))

An embedding that is concatenated with dense features is thus stored once. The negated half of a
rotary embedding is not stored at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ir.affine import affine
from ir.intervals import Intervals
from ir.partition.views import is_plain, is_pointwise
from ir.recurrence import stepped
from ir.sizes import value as number
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Spec
from ir.verify import Facts, facts
from ir.visit import pruned, rebuilt, renamed

LARGEST = 12  # nodes of an expression that each masked element evaluates, too


def through_concatenations(spec: Spec, aliases: Collection[str] = ()) -> Spec:
    """Inlines pointwise operands of concatenations in a spec of literal sizes.

    An operand that alone reads the result of a reduction stays, as the reduction's epilogue.

    aliases: views of other tensors' memory under another shape; their equations stay.
    """
    # Inlining one operand can leave its sources read by concatenations alone.
    for e in reversed(spec.equations):
        readers = [r for r in spec.equations if e.target in r.sources()]
        if e.target in aliases or not _is_part(spec, e) or not readers:
            continue
        if all(is_plain(r) and is_pointwise(r.value) and _padded(r, e.target) for r in readers):
            known, ends = facts(spec), Intervals(spec, {})
            made = (
                replace(r, value=_inlined(r.value, e, known, ends)) if r in readers else r
                for r in spec.equations
            )
            spec = pruned(replace(spec, equations=tuple(made)))
    return spec


def _is_part(spec: Spec, e: Equation) -> bool:
    """Whether an equation's elements can be recomputed where they are read, at little cost."""
    if e.target in {t.name for t in spec.outputs} or e.accumulate or stepped(spec, e.target):
        return False
    small = sum(1 for _ in e.value.walk()) <= LARGEST
    if not is_plain(e) or not is_pointwise(e.value) or not small or not e.reads():
        return False
    equations = {one.target: one for one in spec.equations}
    for source in e.sources():
        alone = [r for r in spec.equations if source in r.sources()] == [e]
        if alone and source in equations and not is_pointwise(equations[source].value):
            return False
    return all(r.pad is None or r.pad == 0 for r in e.reads())


def _padded(e: Equation, tensor: str) -> bool:
    """Whether an equation reads a tensor only as padded reads at indices with a constant shift.

    A tensor that is read inside another read's position (a gather) does not qualify.
    """
    reads = e.reads()
    places = [n for r in reads for p in r.at for n in p.walk() if isinstance(n, Read)]
    if any(n.tensor == tensor for n in places):
        return False
    found = [r for r in reads if r.tensor == tensor]
    return all(r.pad is not None and all(map(_shift, r.at)) for r in found)


def _shift(position: Expr) -> tuple[Index, int] | None:
    """The index and the constant shift of a position; None for other positions."""
    found = affine(position)
    if found is None or len(found.terms) != 1 or not isinstance(found.offset, Number):
        return None
    ((name, by),) = found.terms
    return (Index(name), int(found.offset.value)) if by == 1 else None


def _inlined(expr: Expr, part: Equation, known: Facts, ends: Intervals) -> Expr:
    """Replaces reads of an operand by the expression that computes it there."""
    made = rebuilt(expr, lambda e: _inlined(e, part, known, ends))
    if not isinstance(made, Read) or made.tensor != part.target or made.pad is None:
        return made
    inside = list(_within(made, known))
    value = renamed(part.value, dict(zip(part.indices, made.at, strict=True)))
    if not inside:
        return value
    whole = inside[0]
    for condition in inside[1:]:
        whole = Apply("and", (whole, condition))
    return Apply("where", (whole, _with_pads(value, known, ends), Number(made.pad)))


def _within(read: Read, known: Facts) -> Iterator[Expr]:
    """The bounds that shifted positions must satisfy, without those that always hold."""
    for position, size in zip(read.at, known.tensors[read.tensor].shape, strict=True):
        if (found := _shift(position)) is None:
            continue
        index, by = found
        last = number(size, {}) - by
        if by < 0:
            yield Apply("ge", (index, Number(-by)))
        if number(known.ranges[index.name].high, {}) > last:
            yield Apply("lt", (index, Number(last)))


def _with_pads(expr: Expr, known: Facts, ends: Intervals) -> Expr:
    """Pads the reads that can be out of bounds where the surrounding mask discards their value."""
    made = rebuilt(expr, lambda e: _with_pads(e, known, ends))
    if not isinstance(made, Read):
        return made
    leaves = any(_within(made, known)) or _leaves(made, known, ends)
    return replace(made, pad=0.0) if leaves else made


def _leaves(read: Read, known: Facts, ends: Intervals) -> bool:
    """Whether a position that is computed of indices, as `j // 2 + 1`, can be out of bounds."""
    for position, size in zip(read.at, known.tensors[read.tensor].shape, strict=True):
        if _shift(position) is None and not any(isinstance(n, Read) for n in position.walk()):
            low, high = ends.of(position)
            if low < 0 or high >= number(size, {}):
                return True
    return False
