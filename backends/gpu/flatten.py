"""Nested loops flattened to one: its steps, and where each of them is in a step; see
`ir.nest.nested`."""

from __future__ import annotations

from math import prod

from backends.gpu.tile import Name, StepOrigin, Tiles
from backends.gpu.values import product
from ir.nest.nest import Loop
from ir.spec import Expr, Number


def steps(loops: tuple[Loop, ...]) -> Expr:
    """How many steps all of them together have."""
    counts = [_steps(s) for s in loops]
    known = prod(c.value for c in counts if isinstance(c, Number))
    unknown = [c for c in counts if not isinstance(c, Number)]
    return product([*unknown, *([Number(known)] if known != 1 or not unknown else [])])


def origins(loops: tuple[Loop, ...], step: Name) -> tuple[StepOrigin, ...]:
    """What gives each loop's origin in a step of all, the innermost changing fastest."""
    return tuple(
        StepOrigin(
            Name("origin", loop.index),
            step,
            steps(loops[place + 1 :]) if place + 1 < len(loops) else None,
            _steps(loop) if place else None,
            loop.tile,
        )
        for place, loop in enumerate(loops)
    )


def _steps(loop: Loop) -> Expr:
    size = loop.high.size
    if loop.tile == 1:
        return size
    if isinstance(size, Number):
        return Number(-(-size.value // loop.tile))
    return Tiles(size, loop.tile)
