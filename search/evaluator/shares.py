"""Fair shares: how many slots each search may hold of a cluster that several use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

SILENCE = 60.0  # seconds after which a search that no longer asks has ended


def fair(wanted: Mapping[str, int], capacity: int) -> dict[str, int]:
    """The max-min fair share of each, by name: nobody gets more than it wants, and what one does
    not want is the others'. Everybody gets at least one, whatever the capacity."""
    shares, left = {}, capacity
    for place, (name, most) in enumerate(sorted(wanted.items(), key=lambda w: (w[1], w[0]))):
        shares[name] = max(1, min(most, left // (len(wanted) - place)))
        left = max(0, left - shares[name])
    return shares


class Shares:
    """The searches of a cluster; one for all of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._wanted: dict[tuple[str, str], tuple[int, float]] = {}  # with when it was said

    def share(self, pool: str, search: str, wanted: int, capacity: int) -> int:
        """How many slots a search may hold now; it asks again while it lives.

        pool: the resource that its slots take.  capacity: slots of that pool.
        """
        now = self._clock()
        self._wanted[pool, search] = wanted, now
        self._wanted = {k: v for k, v in self._wanted.items() if now - v[1] < SILENCE}
        rivals = {name: most for (where, name), (most, _) in self._wanted.items() if where == pool}
        return fair(rivals, capacity)[search]

    def leave(self, pool: str, search: str) -> None:
        """A search has ended."""
        self._wanted.pop((pool, search), None)
