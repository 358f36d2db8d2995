"""Sharing: searches with one store wait for what another of them evaluates."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.stored import Leases
from search.loop.hooks import Evaluator, Foresighted, Hurried

FIRST_WAIT, LONGEST_WAIT = 0.02, 0.5  # seconds between polls; the wait doubles


class Shared:
    """An evaluator for searches that share a store. Each search evaluates what it has leased.

    evaluator: looks up the store first, as `Cached` does, because a leased candidate may be known
    by then. Its outcomes must be stored, which ends the lease.

    An outcome of another search also counts as an evaluation, so a search finds the same alone and
    with others. Measured times are not shared.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        leases: Leases,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.evaluator = evaluator
        self.leases = leases
        self.contexts = evaluator.contexts
        self.environment: Mapping[str, Any] = evaluator.environment
        self._begun: set[tuple[str, str]] = set()  # leased before a call asked for them
        self._clock = clock
        self._sleep = sleep

    def ahead(self, asked: Candidate) -> None:
        """See `Foresighted`. Does not begin what another search evaluates."""
        if not isinstance(self.evaluator, Foresighted):
            return
        work = self._work(asked)
        if work is not None:
            if not self.leases.claim([work]):
                return
            self._begun.add(work)
        self.evaluator.ahead(asked)

    def fastest(self, backend: str, us: float) -> None:
        """See `hooks.Hurried`."""
        if isinstance(self.evaluator, Hurried):
            self.evaluator.fastest(backend, us)

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields (position, outcome) for each candidate. Gives up the rest after `seconds`."""
        end = None if seconds is None else self._clock() + seconds
        waiting = list(range(len(candidates)))
        wait, first = FIRST_WAIT, True
        begun, self._begun = self._begun, set()
        self.leases.release(begun - {self._work(candidate) for candidate in candidates})
        while waiting:
            works = {at: self._work(candidates[at]) for at in waiting}
            wanted = [work for work in works.values() if work is not None]
            if first:
                others = [work for work in wanted if work not in begun]
                mine = begun.intersection(wanted).union(self.leases.claim(others))
            else:
                mine = set(self.leases.claim(sorted(self.leases.free(wanted))))
            first = False
            taken = [at for at in waiting if works[at] is None or works[at] in mine]
            waiting = [at for at in waiting if at not in taken]
            left = None if end is None else max(0.0, end - self._clock())
            if taken:
                asked = [candidates[at] for at in taken]
                given = 0
                for position, outcome in self._evaluated(asked, mine, left):
                    given += 1
                    yield taken[position], outcome
                if given < len(taken):
                    return  # time is over, or the evaluator is closed
                wait = FIRST_WAIT
            elif left == 0.0:
                return
            else:
                self._sleep(wait if left is None else min(wait, left))
                wait = min(2 * wait, LONGEST_WAIT)

    def _evaluated(
        self,
        asked: Sequence[Candidate],
        mine: Collection[tuple[str, str]],
        seconds: float | None,
    ) -> Iterator[tuple[int, Evaluated]]:
        """The same as `evaluate`; also releases leases without an outcome."""
        left = set(mine)
        try:
            for position, outcome in self.evaluator.evaluate(asked, seconds):
                left.discard((self.contexts[asked[position].backend], asked[position].key))
                yield position, outcome
        finally:
            self.leases.release(left)

    def _work(self, candidate: Candidate) -> tuple[str, str] | None:
        """The shared name of a candidate; None if each search evaluates it itself."""
        backends = self.environment.get("backends", {})
        if backends.get(candidate.backend, {}).get("time_kind") == "measured":
            return None
        return self.contexts[candidate.backend], candidate.key
