"""Wide tensors: tensors with 64-bit positions."""

from __future__ import annotations

from math import prod

from backends.backend import BackendError
from ir.nest.nest import LoopNest
from ir.sizes import bind, value

NARROW = 2**31  # elements above which a position does not fit 32 bits


def wide_tensors(nest: LoopNest) -> frozenset[str]:
    """The tensors with so many elements at the sizes for which a nest is lowered.

    Positions along one dimension, and those of an index, remain 32-bit numbers. Raises BackendError
    where they do not fit.
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
