"""Fair shares: the number of slots of each search on a shared cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

SILENCE = 60.0  # seconds without a request, after which a search counts as ended


def fair(wanted: Mapping[str, int], capacity: int) -> dict[str, int]:
    """The max-min fair share of each search, by name.

    No search gets more than it wants, and unused shares go to the others. Each gets at least one,
    whatever the capacity.
    """
    shares, left = {}, capacity
    for place, (name, most) in enumerate(sorted(wanted.items(), key=lambda w: (w[1], w[0]))):
        shares[name] = max(1, min(most, left // (len(wanted) - place)))
        left = max(0, left - shares[name])
    return shares


class Shares:
    """The active searches of a cluster; one object for all of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._wanted: dict[tuple[str, str], tuple[int, float]] = {}  # with the time of the request

    def share(self, pool: str, search: str, wanted: int, capacity: int) -> int:
        """The number of slots that a search may hold now. A search asks again while it runs.

        pool: the resource that its slots take. capacity: number of slots in that pool.
        """
        now = self._clock()
        self._wanted[pool, search] = wanted, now
        self._wanted = {k: v for k, v in self._wanted.items() if now - v[1] < SILENCE}
        rivals = {name: most for (where, name), (most, _) in self._wanted.items() if where == pool}
        return fair(rivals, capacity)[search]

    def leave(self, pool: str, search: str) -> None:
        """Removes a search that has ended."""
        self._wanted.pop((pool, search), None)
