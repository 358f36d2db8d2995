"""Twins: candidates whose emitted source is that of one before, and that take its outcome."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from search.core.candidate import Candidate

Identity = Callable[[Candidate], str]  # equal where sources are; empty where that is not known


def none_known(candidate: Candidate) -> str:
    """The identity of sources where nobody emits any before they are evaluated."""
    return ""


class Twins:
    """Which candidate was the first with a source, by the order in which they are evaluated.

    A run that goes on gives all its candidates again in that order, so that the first stay the
    first.
    """

    def __init__(self, identity: Identity = none_known):
        self._identity = identity
        self._first: dict[str, str] = {}  # by identity
        self._first_of: dict[str, str] = {}  # by key: what was found out once

    def part(
        self, candidates: Sequence[Candidate], known: Container[str]
    ) -> tuple[list[Candidate], dict[str, list[Candidate]]]:
        """Those to be evaluated, and their twins by the key of the first, among them those of
        candidates before. known: keys of candidates whose outcomes are known."""
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
        """The key of the first with its source, which may be its own."""
        first = self._first_of.get(candidate.key)
        if first is None:
            same = self._identity(candidate)
            first = self._first.setdefault(same, candidate.key) if same else candidate.key
            self._first_of[candidate.key] = first
        return first
