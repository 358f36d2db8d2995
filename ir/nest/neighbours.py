"""Counts the elements of a gather with computed positions that share a memory sector.

x[i % 2, i // 2] with rows of 128 elements reads two runs at once: along i, each run holds half of
the neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ir.errors import KernelError
from ir.nest.nest import Launch, Load, Map, Slice, Store, Tile
from ir.sizes import value as number
from ir.spec import Expr, Index, Number
from ir.visit import rebuilt

LOOKED_AT = 32  # elements along an axis: those that one instruction of a warp moves


def neighbours(
    launch: Launch,
    move: Load | Store,
    shape: tuple[int, ...],
    extents: Mapping[str, float],
    unit: int,
) -> float:
    """The mean number of elements that a load or store touches of each aligned group of `unit`
    elements.

    The mean is along the index for which it is largest. It is 1 if positions depend on data.

    shape: of the tensor.
    extents: of the indices that the elements are spread over.
    """
    if (terms := _terms(launch, move, shape)) is None:
        return 1.0
    most = 1.0
    for index, extent in extents.items():
        count = min(LOOKED_AT, int(extent))
        if count > 1:
            most = max(most, _shared(terms, index, count, unit))
    return most


def contiguous(
    launch: Launch,
    move: Load | Store,
    shape: tuple[int, ...],
    extents: Mapping[str, float],
    unit: int,
) -> int:
    """The number of elements of a gather, up to `unit`, that are contiguous and aligned along an
    index.

    That holds at all values of the other indices. It is 1 if positions depend on data. See
    `neighbours`.
    """
    terms = _terms(launch, move, shape)
    if terms is None:
        return 1
    most = 1
    for index, extent in extents.items():
        count = min(LOOKED_AT, int(extent))
        while most < unit <= count and _side_by_side(terms, index, count, 2 * most, tuple(extents)):
            most *= 2
    return most


def _terms(
    launch: Launch, move: Load | Store, shape: tuple[int, ...]
) -> tuple[tuple[Expr, int], ...] | None:
    """The positions of all dimensions, each with its stride in elements; None if some depend on
    data."""
    made = {s.value: s.expression for s in launch.statements() if isinstance(s, Map)}
    terms: list[tuple[Expr, int]] = []
    stride = 1
    for one, size in zip(reversed(move.region), reversed(shape), strict=True):
        if (at := _position(one, made)) is None:
            return None
        terms.append((at, stride))
        stride *= size
    return tuple(terms)


@lru_cache(maxsize=4096)
def _side_by_side(
    terms: tuple[tuple[Expr, int], ...], index: str, count: int, unit: int, others: tuple[str, ...]
) -> bool:
    """Whether each `unit` elements along an index are contiguous and aligned. others: the
    indices."""
    try:
        at = [sum(by * number(_at(e, index, n), {}) for e, by in terms) for n in range(count)]
        moved = {
            sum(by * number(_at(e, other, n), {}) for e, by in terms)
            for other in others
            for n in range(LOOKED_AT)
            if other != index
        }
    except (KernelError, KeyError):
        return False  # as in `_shared`
    starts = {*at[::unit], *moved}
    run = all(at[n] + 1 == at[n + 1] for n in range(count - 1) if (n + 1) % unit)
    return run and all(place % unit == 0 for place in starts)


def _position(one: Slice, made: Mapping[str, Expr]) -> Expr | None:
    """The positions of a dimension; None if they depend on data."""
    if one.rows is not None:
        found = made.get(one.rows.value)
        known = found is not None and not any(isinstance(n, Tile) for n in found.walk())
        return found if known else None
    at: Expr = Number(0)
    for index, factor in one.terms:
        at = at + Index(index) * factor * one.step
    return at


@lru_cache(maxsize=4096)
def _shared(terms: tuple[tuple[Expr, int], ...], index: str, count: int, unit: int) -> float:
    groups = set()
    try:
        for n in range(count):
            place = sum(stride * number(_at(at, index, n), {}) for at, stride in terms)
            groups.add(place // unit)
    except (KernelError, KeyError):
        return 1.0  # other functions, or unknown sizes
    return count / len(groups)


def _at(expr: Expr, index: str, place: int) -> Expr:
    """The expression with an index at a position, and all other indices at 0."""
    if isinstance(expr, Index):
        return Number(place if expr.name == index else 0)
    return rebuilt(expr, lambda part: _at(part, index, place))
