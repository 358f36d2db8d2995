"""Finds perfectly nested loops, which can run as one flattened loop."""

from __future__ import annotations

from collections.abc import Collection

from ir.contraction import indices
from ir.nest.nest import Loop
from ir.spec import Number


def nested(loop: Loop) -> tuple[Loop, ...]:
    """The loops from this one inwards, if each is the whole body of the one before; else this loop
    alone.

    Each must run from 0 to a size, or in steps of one to a bound that only enclosing tiles decide.
    As one flattened loop they keep loads in flight across all of their iterations.
    """
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(found[-1].body[0], Loop):
        found.append(found[-1].body[0])
    inner = any(isinstance(s, Loop) for s in found[-1].body)
    own = {s.index for s in found}
    return (loop,) if inner or not all(_from_zero(s, own) for s in found) else tuple(found)


def _from_zero(loop: Loop, own: Collection[str]) -> bool:
    """Whether a loop runs from 0, to an end that does not depend on the indices `own`.

    With larger tiles, the number of tiles up to an end that a tile decides is not expressible.
    """
    if loop.backwards or loop.low.size != Number(0) or loop.high.size is None:
        return False
    around = indices(loop.high.size)
    return not around or loop.tile == 1 and not {*around} & {*own}
