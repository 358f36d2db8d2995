"""Asking: a policy's proposals become the children of a generation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from search import budget
from search.candidate import Candidate
from search.context import Context, GaveUp, Operator
from search.state import Policy, Proposal, State

ROUNDS = 3  # how often a policy is asked again when its proposals do not fill a generation
TOGETHER = 8  # operators that wait for a model at once


@dataclass(frozen=True, slots=True)
class Asking:
    """Makes the children of one generation.

    context: of a proposal.  add: puts a child into the graph, False where it is there already.
    """

    policy: Policy
    operators: Mapping[str, Operator]
    context: Callable[[Proposal], Context]
    add: Callable[[Candidate], bool]

    def ask(self, state: Callable[[], State], count: int, seed: str) -> tuple[Candidate, ...]:
        """Up to `count` children, each new to the graph; fewer where there are no more.

        All follow from the state and the seed. Operators that wait for a model are asked
        first, together, each with a generator of its own, so that their order does not matter.
        """
        rng = random.Random(seed)
        asked: list[Candidate] = []
        for turn in range(ROUNDS):
            now = state()
            proposals = self._named(now, self.policy.ask(now, count, rng), rng)
            answers = self._remote(proposals, f"{seed}/{turn}")
            for number, proposal in enumerate(proposals):
                child = answers[number] if number in answers else self._child(proposal, rng)
                if isinstance(child, Candidate) and self.add(child):
                    asked.append(child)
                if len(asked) == count:
                    return tuple(asked)
        return tuple(asked)

    def _named(
        self, state: State, proposals: Sequence[Proposal], rng: random.Random
    ) -> list[Proposal]:
        """The proposals, each with an operator."""
        named = []
        for proposal in proposals:
            if not proposal.operator:
                able = [
                    n for n, o in self.operators.items() if o.parents == len(proposal.parents)
                ]
                proposal = replace(proposal, operator=budget.choose(state, able, rng))
            named.append(proposal)
        return named

    def _remote(self, proposals: Sequence[Proposal], seed: str) -> dict[int, Candidate | GaveUp]:
        """The answers of the operators that wait for a model, by the proposal's number."""
        waiting = [n for n, p in enumerate(proposals) if self.operators[p.operator].remote]
        if not waiting:
            return {}
        with ThreadPoolExecutor(TOGETHER) as pool:
            found = pool.map(
                lambda n: self._child(proposals[n], random.Random(f"{seed}/{n}")), waiting
            )
            return dict(zip(waiting, found, strict=True))

    def _child(self, proposal: Proposal, rng: random.Random) -> Candidate | GaveUp:
        child = self.operators[proposal.operator].propose(self.context(proposal), rng)
        if isinstance(child, Candidate) and proposal.tag:
            return replace(child, origin=replace(child.origin, tag=proposal.tag))
        return child
