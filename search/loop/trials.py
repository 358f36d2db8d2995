"""Trials: further combinations of answers with parameters, in the course of a search."""

from __future__ import annotations

from typing import Protocol

from search.core.candidate import Candidate
from search.loop.book import Book
from search.loop.context import Context, GaveUp
from search.loop.state import Proposal


class Combinations(Protocol):
    """Chooses the combinations to evaluate for an answer with parameters."""

    def next(self, context: Context, first: Candidate, seed: str) -> Candidate | GaveUp:
        """The next combination of the answer that `first` carries, if one is due. It depends only
        on the graph, the outcomes and the seed."""


def carries(candidate: Candidate) -> bool:
    """Whether a candidate carries an answer with parameters. The first combination does."""
    trial = candidate.origin.trial
    return trial is not None and trial.template is not None


def continues(candidate: Candidate) -> bool:
    """Whether a candidate is a later combination of an answer. No model was asked for it."""
    return candidate.origin.trial is not None and not carries(candidate)


def next_trial(book: Book, combinations: Combinations) -> Candidate | None:
    """The next due combination, of the earliest answer that has one; None if none is due."""
    for first in list(book.graph):
        if carries(first):
            found = another(book, combinations, first)
            if isinstance(found, Candidate):
                return found
    return None


def another(book: Book, combinations: Combinations, first: Candidate) -> Candidate | GaveUp:
    """Another combination of an answer. `first` need not be in the graph."""
    view = book.views[first.backend]
    context = book.context(view, None, Proposal("", first.origin.parents))
    return combinations.next(context, first, str(book.settings.seed))
