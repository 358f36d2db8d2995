"""Generations: the loop of a search that asks no model.

A generation is asked for as a whole, with a generator seeded by its number and the run's seed. Its
outcomes are reported in the order in which it was asked. So the result depends neither on the
number of workers nor on interruptions: a resumed run replays the stored generations and asks for
the unfinished one again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

from search.core.candidate import Candidate
from search.loop.allocation import shares, standing
from search.loop.asking import Asking, proposed
from search.loop.backend_view import BackendView
from search.loop.book import Book
from search.loop.context import Context, Operator
from search.loop.hooks import Foresighted
from search.loop.shape_view import ShapeView, in_turn
from search.loop.state import Policy, Proposal, State
from search.loop.termination import Exhausted, first_reason, rules_of
from search.loop.twins import Twins

PORT = "port"  # the operator that ports the best candidate from another backend


class Generations:
    """Asks, evaluates and reports one generation after another."""

    def __init__(self, book: Book, policy: Policy, operators: Mapping[str, Operator], twins: Twins):
        self.book = book
        self.policy = policy
        self.operators = operators
        self.twins = twins

    def run(self) -> str:
        """Searches until a rule stops it, and returns the reason."""
        book = self.book
        rules = rules_of(book.settings)
        generation = 0
        while True:
            candidates = self._closed(generation)
            seconds = 0.0 if candidates else book.seconds()
            reason = first_reason(rules, book.progress(seconds))
            if reason:
                return reason
            if not candidates:
                candidates = self._ask(generation)
                if not candidates:
                    now = book.progress(book.seconds(), nothing_new=True)
                    return first_reason((*rules, Exhausted()), now) or ""
                book.store.asked(book.run, generation, candidates, book.seconds())
            for c in candidates:
                book.add(c)
            self._evaluate(generation, candidates)
            generation += 1

    def _closed(self, generation: int) -> tuple[Candidate, ...]:
        """The stored candidates of a generation if all outcomes are known, else none. The last
        generation also counts as unfinished if a former limit cut it short."""
        record = self.book.record
        if record is None or generation >= len(record.generations):
            return ()
        stored = record.generations[generation]
        is_last = generation == len(record.generations) - 1
        if generation and is_last and len(stored) < self._missing():
            return ()
        return stored if all(c.key in record.outcomes for c in stored) else ()

    def _missing(self) -> int:
        return self.book.missing(self.book.settings.batch)

    def _ask(self, generation: int) -> tuple[Candidate, ...]:
        """The candidates of a generation, each new to the graph; fewer if no more are found."""
        book = self.book
        if generation == 0:
            return book.roots
        seed, missing = f"{book.settings.seed}/{generation}", self._missing()
        several = len(book.views) > 1
        asked: list[Candidate] = []
        stand = [standing(v.backend, book.graph, v.outcomes) for v in book.views.values()]
        whole, now = shares(stand, book.settings.batch), shares(stand, missing)
        for name, share in whole.items():
            own, most = f"{seed}/{name}" if several else seed, min(share, now[name])
            asked += self._ask_for(book.views[name], generation, share, own, most)
        for name in whole if several else ():  # unused shares go to other backends
            left, more = missing - len(asked), f"{seed}/{name}/more"
            asked += self._ask_for(book.views[name], generation, left, more, left)
        return tuple(asked)

    def _ask_for(
        self, view: BackendView, generation: int, count: int, seed: str, most: int
    ) -> list[Candidate]:
        """Up to `most` children of `count` for a backend; a ported candidate comes first."""
        brought = brought_over(self.book, self.operators, view) if count and most else None
        asked = [] if brought is None else [brought]
        for candidate in asked:
            self._begin(candidate)
        shapes = in_turn(view.shapes, generation) if view.shapes else (None,)
        each = max(1, count // 2) if view.shapes else count
        for number, shape in enumerate(shapes):
            part, left = min(each, count - len(asked)), most - len(asked)
            if part < 1 or left < 1:
                break
            seen = partial(self._state, generation, view, shape)
            own = f"{seed}/{number}" if view.shapes else seed
            context = partial(self._context, view, shape)
            asking = Asking(self.policy, self.operators, context, self._add)
            asked += asking.ask(seen, part, own, left)
        return asked

    def _add(self, candidate: Candidate) -> bool:
        """The same as `Book.add`; also begins to evaluate a new child."""
        new = self.book.add(candidate)
        if new:
            self._begin(candidate)
        return new

    def _begin(self, candidate: Candidate) -> None:
        """Begins the evaluation of a candidate while the rest of its generation is being asked for.
        The outcome is taken after the generation is complete and stored."""
        evaluator, key = self.book.evaluator, candidate.key
        alone = self.twins.first_of(candidate) == key and key not in self.book.known
        if alone and isinstance(evaluator, Foresighted):
            evaluator.ahead(candidate)

    def _state(self, generation: int, view: BackendView, shape: ShapeView | None) -> State:
        return view.state(generation, {}, shape)

    def _context(self, view: BackendView, shape: ShapeView | None, proposal: Proposal) -> Context:
        """The context of an operator. Edited sources are replaced, because operators without models
        work on decisions and equations only."""
        return self.book.context(view, shape, proposal).unedited()

    def _evaluate(self, generation: int, candidates: Sequence[Candidate]) -> None:
        """Evaluates as many candidates as the limit allows, and reports known outcomes in order."""
        book = self.book
        candidates = candidates[: book.missing(len(candidates))]
        new = [c for c in candidates if c.key not in book.known]
        for number, c in enumerate(candidates, book.told):
            if c in new:
                book.asked(number, generation, c)
        alone, twins = self.twins.part(candidates, book.known)
        for first in [key for key in twins if key in book.known]:
            alone += book.shared(first, twins.pop(first))
        waiting = self._tell_known(generation, list(candidates))
        while alone:
            left: list[Candidate] = []  # twins of candidates with an accidental failure
            for position, outcome in book.evaluator.evaluate(alone, book.seconds_left()):
                book.file(alone[position], outcome)
                left += book.shared(alone[position].key, twins.pop(alone[position].key, []))
                waiting = self._tell_known(generation, waiting)
            alone = left

    def _tell_known(self, generation: int, waiting: list[Candidate]) -> list[Candidate]:
        """Reports the first candidates as long as their outcomes are known. Returns the others."""
        while waiting and waiting[0].key in self.book.known:
            self.book.tell(generation, waiting[0])
            waiting = waiting[1:]
        return waiting


def brought_over(
    book: Book, operators: Mapping[str, Operator], view: BackendView
) -> Candidate | None:
    """The best candidate, ported to this backend; None if it is already of this backend, was ported
    before, or cannot be ported."""
    if book.best is None or book.best[0].backend == view.backend or PORT not in operators:
        return None
    context = book.context(view, None, Proposal(PORT, (book.best[0].key,))).unedited()
    child = proposed(operators[PORT], context, random.Random(0))
    return child if isinstance(child, Candidate) and book.add(child) else None
