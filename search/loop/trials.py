"""Trials: further combinations of answers with parameters, as the search comes to them."""

from __future__ import annotations

from typing import Protocol

from search.core.candidate import Candidate
from search.loop.book import Book
from search.loop.context import Context, GaveUp
from search.loop.state import Proposal


class Combinations(Protocol):
    """Chooses the combinations that an answer with parameters is evaluated with."""

    def next(self, context: Context, first: Candidate, seed: str) -> Candidate | GaveUp:
        """Another one of the answer that `first` carries, where one is due. The same graph, outcomes
        and seed give the same."""


def carries(candidate: Candidate) -> bool:
    """Whether a candidate carries an answer with parameters, as its first combination does."""
    trial = candidate.origin.trial
    return trial is not None and trial.template is not None


def continues(candidate: Candidate) -> bool:
    """Whether a candidate is a later combination of an answer, for which no model was asked."""
    return candidate.origin.trial is not None and not carries(candidate)


def next_trial(book: Book, combinations: Combinations) -> Candidate | None:
    """The next combination of the earliest answer of which one is due; None where none is."""
    for first in list(book.graph):
        if carries(first):
            found = another(book, combinations, first)
            if isinstance(found, Candidate):
                return found
    return None


def another(book: Book, combinations: Combinations, first: Candidate) -> Candidate | GaveUp:
    """Another combination of an answer, of which `first` need not be in the graph."""
    view = book.views[first.backend]
    context = book.context(view, None, Proposal("", first.origin.parents))
    return combinations.next(context, first, str(book.settings.seed))
