"""Steps of loops: nested loops flattened into one, see `ir.nest.nested`, and loops in reverse."""

from __future__ import annotations

from math import prod

from backends.gpu.tile import Name, StepOrigin, Tiles
from backends.gpu.values import ZERO, product, scaled
from ir.nest.nest import Loop
from ir.spec import Apply, Expr, Number


def steps(loops: tuple[Loop, ...]) -> Expr:
    """The number of steps of perfectly nested loops together."""
    counts = [_steps(s) for s in loops]
    known = prod(c.value for c in counts if isinstance(c, Number))
    unknown = [c for c in counts if not isinstance(c, Number)]
    return product([*unknown, *([Number(known)] if known != 1 or not unknown else [])])


def origins(loops: tuple[Loop, ...], step: Name) -> tuple[StepOrigin, ...]:
    """The statements that compute each loop's origin in a step, the innermost loop fastest."""
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


def from_end(low: Expr, high: Expr, tile: int, step: Name) -> tuple[Expr, Expr]:
    """For a loop over the tiles from `low` to `high` in reverse: the origin of a step, which counts
    elements from 0, and the end of the steps."""
    span = high if low == ZERO else Apply("sub", (high, low))
    last: Expr
    if tile == 1:
        last = Apply("sub", (span, Number(1)))
    elif isinstance(span, Number):
        last = Number((-(-int(span.value) // tile) - 1) * tile)
    else:
        last = scaled(Apply("sub", (Tiles(span, tile), Number(1))), tile)
    last = last if low == ZERO else Apply("add", (low, last))
    return Apply("sub", (last, step)), span


def _steps(loop: Loop) -> Expr:
    size = loop.high.size
    if loop.tile == 1:
        return size
    if isinstance(size, Number):
        return Number(-(-size.value // loop.tile))
    return Tiles(size, loop.tile)
