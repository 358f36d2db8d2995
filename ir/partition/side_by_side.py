"""Merges independent one-element updates into shared kernels.

    n_1 = a_1 + 1        of 53 batch norms in training mode: as many counters
    n_2 = a_2 + 1
    ...

Alone, each would take a launch, which takes longer than the computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir.partition.groups import MAP, Group, beside
from ir.spec import Equation, Facts

# Equations of a kernel. A launch takes 4 KiB of arguments, and each equation has two or three of 8
# bytes.
MOST = 64


def side_by_side(
    groups: Sequence[Group],
    equations: Callable[[Group], Sequence[Equation]],
    ready: Callable[[Equation], bool],
    known: Facts,
) -> list[Group]:
    """Merges the one-element maps among groups; each merged group takes the place of its first map.

    equations: the equations of a group, with the names of the whole spec.
    ready: whether everything that an equation reads exists before any group runs.
    """
    made: list[Group] = []
    place: int | None = None  # of the latest group that takes such maps
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
