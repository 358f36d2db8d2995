"""Shapes other than the listed one: the problem's own numbers, changed by a secret draw."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from frontends.kernelbench.problem import Problem
from frontends.kernelbench.scaled import Site, edited, load_of, scaled, sites
from ir.errors import KernelError

LEAST = 2 / 3  # Smallest draw, relative to a number of the scaled problem.
# Kinds of numbers that are changed, the most first.
_KINDS = ((0, 1, 2, 3), (0, 1, 2), (0, 1), (0,))


@dataclass(frozen=True, slots=True)
class Shaped:
    """A problem at some sizes."""

    name: str  # For people: "listed", or the numbers that differ.
    problem: Problem
    listed: bool = False


def drawn_shapes(problem: Problem, seed: int, count: int = 2) -> list[Shaped]:
    """Draws up to so many odd, affordable sizes of the problem with a seed. There are fewer if it
    does not run at others.

    This runs the problem.
    """
    try:
        small = scaled(problem)
    except KernelError:  # It does not run on tensors without values.
        return []
    rng, found = random.Random(seed), []
    for changed in _changes(small, rng, count):
        other = edited(small, changed)
        if load_of(other) is not None and _runs(other):
            found.append(Shaped(_name(changed), other))
            if len(found) == count:
                break
    return found


def _changes(problem: Problem, rng: random.Random, count: int) -> Iterator[dict[Site, int]]:
    """Yields ways to change a problem's numbers, the most thorough first."""
    all_sites = sites(problem.source)
    for kinds in _KINDS:
        some = [s for s in all_sites if s.kind in kinds]
        for alike in (False, True) if some else ():
            for _ in range(count):
                yield _changed(some, rng, alike)


def _changed(some: list[Site], rng: random.Random, alike: bool) -> dict[Site, int]:
    """alike: equal numbers stay equal, as sizes may have to."""
    chosen: dict[int, int] = {}
    found = {}
    for site in some:
        new = rng.randint(max(1, int(site.value * LEAST)), max(1, site.value - 1)) | 1
        found[site] = chosen.setdefault(site.value, new) if alike else new
    return found


def _runs(problem: Problem) -> bool:
    """Whether the model runs on real tensors."""
    try:
        made = problem.made()
        made.model(*made.inputs)
    except Exception:  # Foreign code, at sizes it was not written for.
        return False
    return True


def _name(changed: Mapping[Site, int]) -> str:
    return ", ".join(f"{s.name or s.value}={value}" for s, value in changed.items())
