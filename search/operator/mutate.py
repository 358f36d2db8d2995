"""Mutate: a few random changes of a schedule, among all that its verbs allow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ir.edits.edits import Edit, neighbours
from ir.schedule import Schedule
from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp


@dataclass(frozen=True, slots=True)
class Mutate:
    """Applies up to `most` changes, each drawn from the neighbours of the schedule so far.

    Each further change has probability 1/2. A verb's subject is drawn before its value, so a verb
    with many values is not drawn more often. Among `looks` children, the one with the best forecast
    is kept, with a random error of up to `doubt`. If `tries` attempts give nothing new, all single
    changes are tried.
    """

    name: str = "mutate"
    most: int = 3
    tries: int = 16
    looks: int = 8
    doubt: float = 0.1
    parents: int = 1
    remote: bool = False
    by_name: bool = False  # only policies choose it, by name; the budget does not
    # Factors on the probability of verbs, if known.
    prefer: tuple[tuple[str, float], ...] = ()

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child that differs by 1 to `most` changes."""
        start = context.parents[0].schedule
        first = self._edits(context, start)
        if not first:
            return GaveUp("the schedule has no neighbours")
        children: list[tuple[float, Candidate]] = []
        for _ in range(self.tries):
            found = self._walk(context, start, first, rng)
            if isinstance(found, Candidate):
                error = 1 + rng.uniform(-self.doubt, self.doubt)
                children.append((error * context.expected_us(found), found))
                if len(children) == self.looks:
                    break
        if children:
            return min(children, key=lambda child: child[0])[1]
        for edit in rng.sample(first, len(first)):
            found = context.offer(edit.apply(start), self.name, str(edit))
            if isinstance(found, Candidate):
                return found
        return GaveUp(f"all {len(first)} neighbours of the schedule were tried or are not legal")

    def _walk(
        self, context: Context, start: Schedule, first: Sequence[Edit], rng: random.Random
    ) -> Candidate | GaveUp:
        schedule, edits, choice = start, [], first
        while choice:
            edits.append(self._draw(choice, rng))
            schedule = edits[-1].apply(schedule)
            if len(edits) == self.most or rng.random() < 0.5:
                break
            choice = self._edits(context, schedule)
        return context.offer(schedule, self.name, "; ".join(str(e) for e in edits))

    def _edits(self, context: Context, schedule: Schedule) -> tuple[Edit, ...]:
        variant = context.parents[0].variant
        return neighbours(variant, schedule, context.machine, context.sizes)

    def _draw(self, edits: Sequence[Edit], rng: random.Random) -> Edit:
        """Draws an edit: first its verb and subject, then its value, each with equal
        probability."""
        groups: dict[tuple[str, str], list[Edit]] = {}
        for edit in edits:
            groups.setdefault((edit.decision.verb, edit.decision.subject), []).append(edit)
        if not self.prefer:
            return rng.choice(groups[rng.choice(list(groups))])
        liked = dict(self.prefer)
        weights = [liked.get(verb, 1.0) for verb, _ in groups]
        return rng.choice(groups[rng.choices(list(groups), weights)[0]])
