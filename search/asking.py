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
            answers = self._remote(proposals[:count], f"{seed}/{turn}")
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
        """The proposals, each with an operator that there is: one that was named and is not there
        is chosen anew, and where none takes so many parents, the first alone is changed."""
        named = []
        for proposal in proposals:
            if proposal.operator not in self.operators:
                able = self._able(len(proposal.parents))
                if not able:
                    proposal, able = replace(proposal, parents=proposal.parents[:1]), self._able(1)
                proposal = replace(proposal, operator=budget.choose(state, able, rng))
            named.append(proposal)
        return named

    def _able(self, parents: int) -> list[str]:
        """Operators that take so many parents and need not be named."""
        return [
            name
            for name, operator in self.operators.items()
            if operator.parents == parents and not getattr(operator, "by_name", False)
        ]

    def _remote(self, proposals: Sequence[Proposal], seed: str) -> dict[int, Candidate | GaveUp]:
        """The answers of the operators that wait for a model, by the proposal's number."""
        waiting = [n for n, p in enumerate(proposals) if self.operators[p.operator].remote]
        if not waiting:
            return {}
        with ThreadPoolExecutor(TOGETHER) as pool:  # all are asked, whatever becomes of one
            found = {
                n: pool.submit(self._child, proposals[n], random.Random(f"{seed}/{n}"))
                for n in waiting
            }
        return {n: future.result() for n, future in found.items()}

    def _child(self, proposal: Proposal, rng: random.Random) -> Candidate | GaveUp:
        child = self.operators[proposal.operator].propose(self.context(proposal), rng)
        if isinstance(child, Candidate) and proposal.tag:
            return replace(child, origin=replace(child.origin, tag=proposal.tag))
        return child
