"""Registers: which values of a launch are in registers, and the least that one block needs."""

from __future__ import annotations

from collections.abc import Mapping

from ir.memo import by_parts
from ir.nest.footprint import tables, touched
from ir.nest.nest import Launch, Loop, Statement
from machines.gpu.shared_memory import staged_values, value_bytes


def register_bytes(launch: Launch, sizes: Mapping[str, int]) -> int:
    """The least bytes of registers of one block of a launch, tiles padded to powers of two.

    This is the largest value plus all values that are made before a loop and used in it.
    """
    return _most(launch, tuple(sizes.items()))


@by_parts("values", "once", "body")
def _most(launch: Launch, sizes: tuple[tuple[str, int], ...]) -> int:
    """The same."""
    held = register_parts(launch, dict(sizes))
    return max(_alive(block, held, {}) for block in (launch.once, launch.body))


def register_parts(launch: Launch, sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes of each value that is in registers."""
    apart = staged_values(launch) | tables(launch)
    held = value_bytes(launch, tuple(sizes.items()))
    return {name: taken for name, taken in held.items() if name not in apart}


def _alive(block: tuple[Statement, ...], held: Mapping[str, int], kept: Mapping[str, int]) -> int:
    """The most bytes that a block certainly holds at once, with `kept` live throughout."""
    made: set[str] = set(kept)
    most = sum(kept.values())
    for s in block:
        if isinstance(s, Loop):
            through = {n: held[n] for n in touched(s.body) if n in held and n in made}
            most = max(most, _alive(s.body, held, {**kept, **through}))
        else:
            name = getattr(s, "value", "")
            made.add(name)
            own = 0 if name in kept else held.get(name, 0)
            most = max(most, sum(kept.values()) + own)
    return most
