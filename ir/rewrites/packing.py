"""Packing: an input copied into another order of its dimensions.

On machines that have it, the verb `pack` is the same decision in the schedule, for intermediate
tensors too. The order of an intermediate tensor is a rewrite everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ir.recurrence import recurrences
from ir.rewrites.equations import fresh, kept, returned
from ir.spec import Equation, Expr, Index, Read, Spec, Tensor
from ir.visit import rebuilt


def pack_input(spec: Spec) -> list[Spec]:
    """before: y[m] = sum(w[k, m] * x[k], k)
    after:  w_packed[w_1, w_0]: [M, K] = w[w_0, w_1]; y[m] = sum(w_packed[m, k] * x[k], k)

    When equal: always, of inputs of two dimensions and more.
    """
    found = []
    for t in spec.inputs:
        for order in _orders(len(t.shape)):
            found.append(_packed(spec, t, order))
    return kept(spec, found)


def reorder_tensor(spec: Spec) -> list[Spec]:
    """before: t[m, n] = f(x[m, n]); y[n] = sum(t[m, n], m)
    after:  t[n, m] = f(x[m, n]); y[n] = sum(t[n, m], m)

    When equal: t is not returned, and computed point by point of its left side's indices.
    """
    found = []
    carried = {t for r in recurrences(spec) for t in r.targets}
    for e in spec.equations:
        if e.target in returned(spec) | carried or e.accumulate:
            continue
        for order in _orders(len(e.at)):
            lines = tuple(
                replace(
                    r,
                    at=tuple(_transposed(x, e.target, e.target, order) for x in r.at),
                    value=_transposed(r.value, e.target, e.target, order),
                )
                for r in spec.equations
            )
            own = {e.target: order}
            lines = tuple(_left(r, own[r.target]) if r.target in own else r for r in lines)
            found.append(replace(spec, equations=lines))
    return kept(spec, found)


def _orders(rank: int) -> Iterator[tuple[int, ...]]:
    """Every dimension but the last, moved to the end."""
    for last in range(rank - 1):
        yield (*(d for d in range(rank) if d != last), last)


def _left(e: Equation, order: tuple[int, ...]) -> Equation:
    sizes = tuple(e.sizes[d] for d in order) if e.sizes else ()
    return replace(e, at=tuple(e.at[d] for d in order), sizes=sizes)


def _packed(spec: Spec, t: Tensor, order: tuple[int, ...]) -> Spec:
    name = fresh(spec, f"{t.name}_packed")
    own = tuple(Index(fresh(spec, f"{t.name}_{d}")) for d in range(len(t.shape)))
    made = Equation(
        name,
        tuple(own[d] for d in order),
        Read(t.name, own),
        sizes=tuple(t.shape[d] for d in order),
    )
    lines = tuple(
        replace(
            e,
            at=tuple(_transposed(x, t.name, name, order) for x in e.at),
            value=_transposed(e.value, t.name, name, order),
        )
        for e in spec.equations
    )
    return replace(spec, equations=(made, *lines))


def _transposed(expr: Expr, tensor: str, to: str, order: tuple[int, ...]) -> Expr:
    """The expression reading a tensor as `to`, its positions in another order."""
    made = rebuilt(expr, lambda x: _transposed(x, tensor, to, order))
    if isinstance(made, Read) and made.tensor == tensor:
        return replace(made, tensor=to, at=tuple(made.at[d] for d in order))
    return made
