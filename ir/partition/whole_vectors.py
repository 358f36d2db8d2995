"""Pads the K dimension of large f32 matmuls with zeros to a multiple of the vector width.

before: y[i, j] = sum(x[i, k] * w[k, j], k)                               where k runs to 2949
after:  y[i, j] = sum(pad(x[i, k], 0.0) * pad(w[k, j], 0.0), k=2952)

Under 3xTF32 split precision (`precision` of `tf32x3`) a matmul reads split copies of its operands.
With the padded K dimension, rows of the copies consist of whole vectors, which the machine's DMA
engine can move. Rows of the operands themselves need not. The padding adds only terms 0 * 0.
"""

from __future__ import annotations

from dataclasses import replace

from ir.contraction import contraction
from ir.partition.views import is_plain
from ir.sizes import value as number
from ir.spec import Equation, Expr, Index, Number, Range, Read, Spec
from ir.verify import Facts, facts
from ir.visit import rebuilt

VECTOR = 4  # f32 elements that one access moves
# Least M and N, and least K: above them the copies take much less time than the matmul.
LEAST_SIDE, LEAST_TERMS = 512, 64


def with_whole_vectors(spec: Spec) -> Spec:
    """Pads the K dimension of large matmuls of f32 inputs in a literal spec."""
    known = facts(spec)
    given = {t.name for t in spec.inputs if t.dtype == "f32"}
    made = tuple(_whole(e, known) if _ends_within(e, known, given) else e for e in spec.equations)
    return replace(spec, equations=made)


def _ends_within(e: Equation, known: Facts, given: set[str]) -> bool:
    """Whether an equation is such a matmul, with a K dimension of no whole vectors."""
    found = contraction(e)
    if found is None or e.accumulate or not is_plain(e) or len(found.over) != 1:
        return False
    (over,) = found.over
    reads = e.reads()
    plain = all(r.pad is None and all(isinstance(p, Index) for p in r.at) for r in reads)
    if len(reads) != 2 or not plain or not {r.tensor for r in reads} <= given:
        return False
    terms = number(known.ranges[over].high, {})
    whole = all(
        number(known.tensors[r.tensor].shape[r.at.index(Index(over))], {}) == terms for r in reads
    )
    sides = [_extent(known, side) for side in (found.rows, found.columns)]
    return whole and terms % VECTOR != 0 and terms >= LEAST_TERMS and min(sides) >= LEAST_SIDE


def _whole(e: Equation, known: Facts) -> Equation:
    """The matmul with its K dimension padded to whole vectors."""
    (over,) = e.reduced
    terms = -(-number(known.ranges[over].high, {}) // VECTOR) * VECTOR
    value = replace(
        e.reduce, body=_padded(e.reduce.body), ranges=(Range(over, Number(0), Number(terms)),)
    )
    return replace(e, value=value)


def _padded(expr: Expr) -> Expr:
    return replace(expr, pad=0.0) if isinstance(expr, Read) else rebuilt(expr, _padded)


def _extent(known: Facts, side: tuple[str, ...]) -> int:
    extent = 1
    for index in side:
        extent *= number(known.ranges[index].high, {})
    return extent
