"""Lifetimes of shared memory tiles: tiles that are never live together get overlapping memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backends.gpu.threads import thread as to
from backends.gpu.threads.barriers import accessed
from backends.gpu.tile import Name


@dataclass(slots=True)
class _Life:
    """The live range of a region, in statement numbers."""

    first: int
    last: int

    def meets(self, other: _Life) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(slots=True)
class _Walk:
    """The accesses of each region in program order, with their enclosing loops."""

    shared: Mapping[Name, to.Shared]
    number: int = 0
    # For each region: statement number, whether it is a write that all threads reach, enclosing loops.
    found: dict[str, list[tuple[int, bool, tuple[int, ...]]]] = field(default_factory=dict)
    # Numbers of the first and last statement
    loops: dict[int, tuple[int, int]] = field(default_factory=dict)

    def block(
        self, statements: Sequence[to.Statement], loops: tuple[int, ...], guarded: bool
    ) -> None:
        for s in statements:
            self.number += 1
            match s:
                case to.Loop(body=body):
                    own = self.number
                    self.block(body, (*loops, own), False)
                    self.number += 1
                    self.loops[own] = (own, self.number)
                case to.Guard(body=body, others=others):
                    self.block((*body, *others), loops, True)
                case _:
                    tiles, writes = accessed(s, self.shared)
                    for tile in tiles:
                        access = (self.number, writes and not guarded, loops)
                        self.found.setdefault(tile.region, []).append(access)

    def lives(self) -> dict[str, _Life]:
        """The live range of each region. It spans a loop that contains only some of the accesses,
        and a loop in which an iteration may read what another one wrote."""
        found = {}
        for region, accesses in self.found.items():
            numbers = [number for number, _, _ in accesses]
            life = _Life(numbers[0], numbers[-1])
            around = {loop for _, _, loops in accesses for loop in loops}
            for loop in around:
                inside = [a for a in accesses if loop in a[2]]
                if len(inside) < len(accesses) or not inside[0][1]:
                    first, last = self.loops[loop]
                    life = _Life(min(life.first, first), max(life.last, last))
            found[region] = life
        return found


def overlapped(
    shared: Mapping[Name, to.Shared],
    once: Sequence[to.Statement],
    body: Sequence[to.Statement],
    size: Callable[[to.Shared], int],
) -> dict[Name, to.Shared]:
    """The tiles, where tiles that are never live together share a region. size: bytes of a tile.

    Tiles that are touched before the first tile of a persistent block are live throughout.
    """
    walk = _Walk(shared)
    walk.block(once, (), False)
    before = set(walk.found)
    walk.block(body, (), False)
    lives = walk.lives()
    for region in before:
        lives[region] = _Life(0, walk.number)
    bytes_of: dict[str, int] = {}
    for tile in shared.values():
        bytes_of[tile.region] = max(bytes_of.get(tile.region, 0), size(tile))
    homes: dict[str, list[str]] = {}  # regions by the region that contains them
    for region in sorted(lives, key=lambda r: -bytes_of[r]):
        fits = (
            home
            for home, held in homes.items()
            if not any(lives[region].meets(lives[other]) for other in held)
        )
        homes.setdefault(next(fits, region), []).append(region)
    home_of = {region: home for home, held in homes.items() for region in held}
    return {n: replace(t, region=home_of.get(t.region, t.region)) for n, t in shared.items()}
