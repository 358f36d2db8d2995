"""Packing: copies an input into another order of its dimensions.

On machines with the verb `pack` a schedule can decide the same, for intermediate tensors, too. The
dimension order of an intermediate tensor is a rewrite on all machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ir.recurrence import recurrences
from ir.rewrites.equations import fresh, kept, returned
from ir.spec import Equation, Index, Read, Spec, Tensor
from ir.visit import reordered


def pack_input(spec: Spec) -> list[Spec]:
    """before: y[m] = sum(w[k, m] * x[k], k)
    after:  w_packed[w_1, w_0]: [M, K] = w[w_0, w_1]; y[m] = sum(w_packed[m, k] * x[k], k)

    When equal: always. Applies to inputs with at least two dimensions.
    """
    found = []
    for t in spec.inputs:
        for order in _orders(len(t.shape)):
            found.append(_packed(spec, t, order))
    return kept(spec, found)


def reorder_tensor(spec: Spec) -> list[Spec]:
    """before: t[m, n] = f(x[m, n]); y[n] = sum(t[m, n], m)
    after:  t[n, m] = f(x[m, n]); y[n] = sum(t[n, m], m)

    When equal: t is not returned, and is neither scattered into nor part of a recurrence.
    """
    found = []
    carried = {t for r in recurrences(spec) for t in r.targets}
    for e in spec.equations:
        if e.target in returned(spec) | carried or e.accumulate:
            continue
        for order in _orders(len(e.at)):
            found.append(reordered(spec, e.target, order))
    return kept(spec, found)


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    """Every dimension but the last, moved to the end."""
    for last in range(rank - 1):
        yield (*(d for d in range(rank) if d != last), last)


def _packed(spec: Spec, t: Tensor, order: tuple[int, ...]) -> Spec:
    name = fresh(spec, f"{t.name}_packed")
    own = tuple(Index(fresh(spec, f"{t.name}_{d}")) for d in range(len(t.shape)))
    made = Equation(
        name,
        tuple(own[d] for d in order),
        Read(t.name, own),
        sizes=tuple(t.shape[d] for d in order),
    )
    return replace(spec, equations=(made, *reordered(spec, t.name, order, name).equations))
