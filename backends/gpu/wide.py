"""Wide tensors: those whose positions are numbers of 64 bits."""

from __future__ import annotations

from math import prod

from backends.backend import BackendError
from ir.nest.nest import LoopNest
from ir.sizes import bind, value

NARROW = 2**31  # elements from which on a position is no number of 32 bits


def wide_tensors(nest: LoopNest) -> frozenset[str]:
    """The tensors that have so many elements at the sizes that a nest is lowered for.

    Positions along one dimension, and those that an index runs over, stay numbers of 32 bits:
    BackendError where they are too many for that.
    """
    bound = bind(nest.spec, dict(nest.sizes))
    found = set()
    for launch in nest.launches:
        for p in launch.parameters:
            shape = [value(e, bound) for e in p.shape]
            _require_short(f"a dimension of `{p.name}`", max(shape, default=1))
            if prod(shape) >= NARROW:
                found.add(p.name)
        for index, size in (*launch.whole, *((g.index, g.size) for g in launch.grid)):
            _require_short(f"the index `{index}`", value(size, bound))
    return frozenset(found)


def _require_short(what: str, size: int) -> None:
    if size >= NARROW:
        raise BackendError(
            "emit", f"{what} has {size} positions; {NARROW - 1} at most can be told apart"
        )
