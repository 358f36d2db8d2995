"""Twins: candidates with the same emitted source as an earlier one, whose outcome they take."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from search.core.candidate import Candidate

Identity = Callable[[Candidate], str]  # equal for equal sources; empty if unknown


def none_known(candidate: Candidate) -> str:
    """The identity for a search that does not emit sources before evaluation."""
    return ""


class Twins:
    """Finds the first candidate with each source, in the order of evaluation.

    A continued run passes all its candidates again in that order, so the first stay the same.
    """

    def __init__(self, identity: Identity = none_known):
        self._identity = identity
        self._first: dict[str, str] = {}  # by identity
        self._first_of: dict[str, str] = {}  # by key, as a cache

    def part(
        self, candidates: Sequence[Candidate], known: Container[str]
    ) -> tuple[list[Candidate], dict[str, list[Candidate]]]:
        """The candidates to evaluate, and twins by the key of the first, which may be an earlier
        candidate.

        known: keys of candidates with known outcomes.
        """
        alone: list[Candidate] = []
        twins: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            first = self.first_of(candidate)
            if candidate.key in known:
                continue
            if first == candidate.key:
                alone.append(candidate)
            else:
                twins.setdefault(first, []).append(candidate)
        return alone, twins

    def first_of(self, candidate: Candidate) -> str:
        """The key of the first candidate with the same source, which may be its own."""
        first = self._first_of.get(candidate.key)
        if first is None:
            same = self._identity(candidate)
            first = self._first.setdefault(same, candidate.key) if same else candidate.key
            self._first_of[candidate.key] = first
        return first
