"""Side by side: maps of one element that need nothing computed before them share a kernel.

    n_1 = a_1 + 1        of 53 batch norms in training mode: as many counters
    n_2 = a_2 + 1
    ...

Alone, each would take a launch, which takes longer than what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir.partition.groups import MAP, Group, beside
from ir.spec import Equation, Facts

# Equations of a kernel: a launch takes 4 KiB of arguments, and each has two or three of 8 bytes.
MOST = 64


def side_by_side(
    groups: Sequence[Group],
    equations: Callable[[Group], Sequence[Equation]],
    ready: Callable[[Equation], bool],
    known: Facts,
) -> list[Group]:
    """Groups in order, with such maps where the first of them is. equations: of a group, by the names of the
    whole.  ready: whether what an equation reads is there before any group."""
    made: list[Group] = []
    place: int | None = None  # of the latest group that takes some
    for group in groups:
        own = equations(group)
        if group.kind != MAP or not own or any(e.at or not ready(e) for e in own):
            made.append(group)
        elif place is not None and (wider := beside(made[place], own, known, MOST)):
            made[place] = wider
        else:
            place = len(made)
            made.append(group)
    return made
