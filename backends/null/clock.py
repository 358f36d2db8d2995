"""An artificial clock: counts a nest's statements and charges them by the machine's rates.

Tiles of a grid run in waves of the machine's parallelism. A tile is charged for each statement, for
the bytes that it loads and stores, and for the elements that it computes, sequentially. It gives a
search something to optimise, but describes no machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ir.machine import Machine
from ir.nest.nest import Dot, Launch, Load, Loop, LoopNest, Statement, Store
from ir.sizes import bind, value
from ir.spec import DTYPES

JAGGED_ITERATIONS = 4  # of a loop whose bounds depend on data


def modelled_us(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> dict[str, float]:
    """The microseconds at some sizes: the total (`us`) and each part (`launch` and so on)."""
    bound = bind(nest.spec, sizes)
    parts = {"launch": 0.0, "issue": 0.0, "memory": 0.0, "compute": 0.0}
    details = machine.details.get("null", {})
    for launch in nest.launches:
        times = launch.times(bound)
        parts["launch"] += times * float(details.get("launch_us", 1.0))
        tiles = math.prod(_cut(value(a.size, bound), a.tile) for a in launch.grid)
        waves = _cut(tiles, machine.parallel)
        for iterations, step in _steps((*launch.once, *launch.body), bound):
            iterations *= times
            parts["issue"] += waves * iterations * float(details.get("statement_us", 0.01))
            kind, us = _price(launch, step, machine, bound)
            parts[kind] += waves * iterations * us
    return {"us": sum(parts.values())} | parts


def _steps(
    block: Iterable[Statement], sizes: Mapping[str, int], iterations: int = 1
) -> Iterable[tuple[int, Statement]]:
    """Each statement of a block with the number of its executions."""
    for step in block:
        if isinstance(step, Loop):
            yield from _steps(step.body, sizes, iterations * _iterations(step, sizes))
        else:
            yield iterations, step


def _iterations(loop: Loop, sizes: Mapping[str, int]) -> int:
    if loop.low.size is None or loop.high.size is None:
        return JAGGED_ITERATIONS
    return _cut(value(loop.high.size, sizes) - value(loop.low.size, sizes), loop.tile)


def _price(
    launch: Launch, step: Statement, machine: Machine, sizes: Mapping[str, int]
) -> tuple[str, float]:
    """The charge of one statement for one tile, in microseconds at its share of the machine."""
    name = getattr(step, "value", None)
    if not isinstance(name, str):
        return "issue", 0.0
    held = launch.value(name)
    elements = math.prod(value(a.extent, sizes) for a in held.axes)
    share = machine.parallel * 1e6
    if isinstance(step, Load | Store):
        return "memory", elements * DTYPES[held.dtype] / machine.bandwidth * share
    unit = "matrix" if isinstance(step, Dot) and "matrix" in machine.units else "vector"
    return "compute", elements / machine.peak(unit, "f32") * share


def _cut(size: int, tile: int) -> int:
    return max(1, -(-size // max(1, tile)))
