"""Islands: separate populations that regularly send their best to the next one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from search.loop.state import Proposal, State
from search.policy.crossing import share
from search.policy.parameters import real, whole
from search.policy.ranking import ranked, starts


@dataclass(frozen=True, slots=True)
class Islands:
    """A child belongs to the island in its origin's tag; the roots belong to all."""

    count: int = whole(4, 2, 64)  # number of islands, in a ring
    # Generations between migrations. Then the best of each island gets a child on the next, and
    # belongs to that too.
    every: int = whole(3, 1, 1000)
    # The share of the other parents that are the best of their island.
    elitism: float = real(0.4, 0.0, 1.0)
    # The share of children with two parents, both of one island.
    crossed: float = real(0.0, 0.0, 1.0)
    tournament: int = whole(3, 1, 64)  # candidates that are drawn for each parent
    population: int = whole(12, 2, 1000)  # number of the fastest of an island that can be drawn

    def ask(self, state: State, count: int, rng: random.Random) -> Sequence[Proposal]:
        """`count` proposals; the islands take turns."""
        people, crossed = self._people(state), share(self.crossed, state)
        moving = state.generation % self.every == 0
        proposals = []
        for turn in range(count):
            island = (state.generation * count + turn) % self.count
            guest = people[island - 1][:1] if moving and turn < self.count else []
            parents = tuple(guest) or self._parents(people[island], crossed, rng)
            proposals.append(Proposal("", parents or (rng.choice(state.roots),), tag=_tag(island)))
        return proposals

    def _people(self, state: State) -> list[list[str]]:
        """The keys on each island, fastest first: those made there, those with a child there, and
        the roots."""
        homes: dict[str, set[str]] = {}
        for c in state.graph:
            for key in (c.key, *c.origin.parents):
                homes.setdefault(key, set()).add(c.origin.tag)
        order, everywhere = ranked(state), set(starts(state))
        return [
            [k for k in order if k in everywhere or _tag(n) in homes[k]][: self.population]
            for n in range(self.count)
        ]

    def _parents(self, people: list[str], crossed: float, rng: random.Random) -> tuple[str, ...]:
        """One or two parents of an island; empty if the island is empty."""
        if not people:
            return ()
        one = people[0] if rng.random() < self.elitism else self._winner(people, rng)
        others = [key for key in people if key != one]
        if others and rng.random() < crossed:
            return one, self._winner(others, rng)
        return (one,)

    def _winner(self, people: list[str], rng: random.Random) -> str:
        """The fastest of a few random candidates; `people` are sorted by time."""
        return people[min(rng.randrange(len(people)) for _ in range(self.tournament))]


def _tag(island: int) -> str:
    return f"island {island}"
