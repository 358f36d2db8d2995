"""The cache: reuses stored outcomes of any run in the same context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Failure
from search.core.stored import Keeper
from search.loop.hooks import Evaluator, Foresighted, Hurried


class Cached:
    """An evaluator that looks into the store first.

    A cached outcome counts as an evaluation, so a search finds the same with a full store as with
    an empty one. Measured times vary, so they are not taken from the store.
    """

    def __init__(self, evaluator: Evaluator, store: Keeper):
        self.evaluator = evaluator
        self.store = store
        self.contexts = evaluator.contexts
        self.environment: Mapping[str, Any] = evaluator.environment
        self.hits = 0

    def ahead(self, asked: Candidate) -> None:
        """See `hooks.Foresighted`. Does not begin a candidate with a known outcome."""
        if isinstance(self.evaluator, Foresighted):
            known = self.store.cached(asked.key, self.contexts[asked.backend])
            if known is None or not _lasting(known):
                self.evaluator.ahead(asked)

    def fastest(self, backend: str, us: float) -> None:
        """See `hooks.Hurried`."""
        if isinstance(self.evaluator, Hurried):
            self.evaluator.fastest(backend, us)

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields (position, outcome) for each candidate; known outcomes come first."""
        missing = []
        for position, candidate in enumerate(candidates):
            known = self.store.cached(candidate.key, self.contexts[candidate.backend])
            if known is None or not _lasting(known):
                missing.append(position)
                continue
            self.hits += 1
            yield position, known
        asked = [candidates[position] for position in missing]
        for position, outcome in self.evaluator.evaluate(asked, seconds):
            yield missing[position], outcome


def _lasting(outcome: Evaluated) -> bool:
    if isinstance(outcome, Failure):
        if outcome.partly is not None:
            return _lasting(outcome.partly)
        return not outcome.by_chance and not outcome.slow
    return outcome.time_kind != "measured"
