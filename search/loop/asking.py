"""Asking: a policy's proposals become the children of a generation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.loop import budget
from search.loop.context import Context, GaveUp, Halted, Operator, Writes
from search.loop.state import Policy, Proposal, State

ROUNDS = 3  # how often a policy is asked again when its proposals do not fill a generation
TOGETHER = 8  # operators that wait for a model at once
TWICE = "another request of this generation came to the same kernel"


Child = Candidate | GaveUp | Halted


@dataclass(frozen=True, slots=True)
class Asking:
    """Makes the children of one generation."""

    policy: Policy
    operators: Mapping[str, Operator]
    context: Callable[[Proposal], Context]  # of a proposal
    add: Callable[[Candidate], bool]  # puts a child into the graph, False where it is there already
    # Is told of each proposal of which nothing came, in order, and why.
    unmade: Callable[[GaveUp | Halted], None] = lambda why: None
    # Is told of each request to a model as it is written, in words.
    requested: Callable[[str], None] = lambda words: None

    def ask(
        self, state: Callable[[], State], count: int, seed: str, most: int | None = None
    ) -> tuple[Candidate, ...]:
        """Up to `most` children of a generation of `count` (None: all), each new to the graph;
        fewer where there are no more, or where no model can be asked any longer.

        All follow from the state and the seed; with `most`, they are the first of those without.
        Operators that wait for a model are asked first, together, each with a generator of its
        own, so that their order does not matter; no more of them than children are missing.
        """
        rng = random.Random(seed)
        wanted = count if most is None else min(most, count)
        asked: list[Candidate] = []
        for turn in range(ROUNDS):
            now = state()
            proposals = self._named(now, self.policy.ask(now, count, rng), rng)
            if self._turn(proposals, asked, wanted, f"{seed}/{turn}", rng):
                break
        return tuple(asked)

    def _turn(
        self,
        proposals: Sequence[Proposal],
        asked: list[Candidate],
        wanted: int,
        seed: str,
        rng: random.Random,
    ) -> bool:
        """Adds the children of proposals to those that were asked; whether that was all.

        Once no model can be asked any longer, those alone count that have been answered.
        """
        words: dict[int, str] = {}  # of requests, by the proposal's number, as the answers are
        answers = self._remote(dict(enumerate(proposals[: wanted - len(asked)])), seed, words)
        halted = any(isinstance(a, Halted) for a in answers.values())
        for number, proposal in enumerate(proposals):
            if len(asked) == wanted:
                break
            if halted and number not in answers:
                continue
            if number not in answers and self.operators[proposal.operator].remote:
                answers |= self._remote({number: proposal}, seed, words)  # others came to nothing
            made = answers.get(number) or self._made(proposal, rng)
            if not isinstance(made, Candidate):
                halted = halted or isinstance(made, Halted)
                self.unmade(made)
            elif self.add(made):
                asked.append(made)
            elif number in words:
                self.unmade(GaveUp(TWICE, asked=words[number]))
        return halted or len(asked) == wanted

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

    def _remote(
        self, proposals: Mapping[int, Proposal], seed: str, words: dict[int, str]
    ) -> dict[int, Child]:
        """The answers of the operators that wait for a model, by the proposal's number.

        Requests are written in order, each knowing those before it, and answered together. words:
        takes what each is in words.
        """
        waiting = [n for n, p in proposals.items() if self.operators[p.operator].remote]
        if not waiting:
            return {}
        written = {}
        for n in waiting:
            written[n], words[n] = self._written(proposals[n], f"{seed}/{n}")
        with ThreadPoolExecutor(TOGETHER) as pool:  # all are asked, whatever becomes of one
            found = {n: pool.submit(_sent, answer) for n, answer in written.items()}
        return {n: _tagged(future.result(), proposals[n]) for n, future in found.items()}

    def _written(
        self, proposal: Proposal, seed: str
    ) -> tuple[Callable[[], Candidate | GaveUp], str]:
        """What has a proposal's request answered, and the request in words; it draws from a
        generator of its own."""
        operator, rng = self.operators[proposal.operator], random.Random(seed)
        if not isinstance(operator, Writes):
            return partial(operator.propose, self.context(proposal), rng), ""
        pending = operator.prepare(self.context(proposal), rng)
        if isinstance(pending, GaveUp):
            return partial(_same, pending), ""
        self.requested(pending.asked)
        return pending.answer, pending.asked

    def _made(self, proposal: Proposal, rng: random.Random) -> Child:
        """What an operator that waits for nobody makes of a proposal."""
        propose = self.operators[proposal.operator].propose
        return _tagged(_sent(partial(propose, self.context(proposal), rng)), proposal)


def _sent(answer: Callable[[], Candidate | GaveUp]) -> Child:
    try:
        return answer()
    except Halted as halted:
        return halted


def _same(found: GaveUp) -> GaveUp:
    return found


def _tagged(child: Child, proposal: Proposal) -> Child:
    if isinstance(child, Candidate) and proposal.tag:
        return replace(child, origin=replace(child.origin, tag=proposal.tag))
    return child


def silenced(reasons: Sequence[str]) -> Halted:
    """Why a search ends whose models give no answer, and that has no other operators left."""
    words, count = Counter(reasons).most_common(1)[0]
    return Halted(
        KernelError(
            f"no model answers, and no other operator has anything new: {count} of "
            f"{len(reasons)} requests failed as follows: {words}",
            hint="go on with --resume when the endpoint answers again",
        ),
        spent=False,
    )
