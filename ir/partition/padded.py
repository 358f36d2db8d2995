"""Replaces the zero start of a recurrence by the padding of its read.

before: before[t, b, k] = where(t == 0, 0.0, pad(h[t - 1, b, k], 0.0)); a[t, b, j] = sum(before[t, b, k] * w[j, k], k)
after:  a[t, b, j] = sum(pad(h[t - 1, b, k], 0.0) * w[j, k], k)

The operand of the matmul is then a plain load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Read, Spec, Tensor
from ir.verify import facts
from ir.visit import rebuilt, reindexed


def with_padded_starts(spec: Spec) -> Spec:
    """Removes conditions that select zero at the first step of a recurrence.

    With symbolic sizes, a condition on the last step of a reverse recurrence stays.
    """
    if not any(_conditions(e.value) for e in spec.equations):
        return spec
    tensors = facts(spec).tensors
    kept = {t.name for t in spec.outputs}
    reads: dict[str, tuple[Equation, Read]] = {}  # by target: equations that become a plain read
    made: list[Equation] = []
    for e in spec.equations:
        value = _padded(e.value, tensors)
        plain = not e.accumulate and all(isinstance(p, Index) for p in e.at)
        if value != e.value and isinstance(value, Read) and plain and e.target not in kept:
            reads[e.target] = e, value
        made.append(replace(e, value=value))
    if tuple(made) == spec.equations:
        return spec
    reads = {t: one for t, one in reads.items() if _is_read_plainly(t, made)}
    equations = (replace(e, value=_inlined(e.value, reads)) for e in made if e.target not in reads)
    return replace(spec, equations=tuple(equations))


def _is_read_plainly(tensor: str, equations: Sequence[Equation]) -> bool:
    """Whether all reads of a tensor are unpadded and at plain indices."""
    nodes = (n for e in equations for n in e.value.walk())
    reads = [n for n in nodes if isinstance(n, Read) and n.tensor == tensor]
    return all(n.pad is None and all(isinstance(p, Index) for p in n.at) for n in reads)


def _inlined(expr: Expr, reads: Mapping[str, tuple[Equation, Read]]) -> Expr:
    if isinstance(expr, Read) and expr.tensor in reads:
        e, value = reads[expr.tensor]
        names = {a.name: b.name for a, b in zip(e.at, expr.at, strict=True)}  # type: ignore[attr-defined]
        return reindexed(value, names.__getitem__)
    return rebuilt(expr, lambda part: _inlined(part, reads))


def _conditions(expr: Expr) -> bool:
    return any(isinstance(n, Apply) and n.function == "where" for n in expr.walk())


def _padded(expr: Expr, tensors: Mapping[str, Tensor]) -> Expr:
    match expr:
        case Apply("where", (Apply("eq", (Index(index), Number(at))), start, Read() as read)) if (
            read.pad is not None
            and _number(start) == read.pad
            and _is_outside(read, index, int(at), tensors)
        ):
            return read
    return rebuilt(expr, lambda part: _padded(part, tensors))


def _number(expr: Expr) -> float | None:
    """Zero if an expression is the number zero in any dtype, else None."""
    while isinstance(expr, Cast):
        expr = expr.value
    return 0.0 if isinstance(expr, Number) and expr.value == 0 else None


def _is_outside(read: Read, index: str, at: int, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a read is out of bounds where an index has the value `at`."""
    for position, size in zip(read.at, tensors[read.tensor].shape, strict=True):
        match position:
            case Apply("add" | "sub" as sign, (Index(name), Number(lag))) if name == index:
                found = at + int(lag) if sign == "add" else at - int(lag)
                if found < 0 or isinstance(size, Number) and found >= size.value:
                    return True
    return False
