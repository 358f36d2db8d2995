"""Asking: makes the children of a generation from a policy's proposals."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.loop import budget
from search.loop.context import Context, GaveUp, NotInstalled, Operator
from search.loop.state import Policy, Proposal, State

ROUNDS = 3  # times that a policy is asked if its proposals do not fill a generation


@dataclass(frozen=True, slots=True)
class Asking:
    """Makes the children of one generation with operators that ask no model."""

    policy: Policy
    operators: Mapping[str, Operator]
    context: Callable[[Proposal], Context]  # makes the context of a proposal
    add: Callable[[Candidate], bool]  # adds a child to the graph; False if it is known

    def ask(
        self, state: Callable[[], State], count: int, seed: str, most: int | None = None
    ) -> tuple[Candidate, ...]:
        """The children of a generation of `count`, at most `most` of them (None: all), each new to
        the graph.

        They depend only on the state and the seed. With `most`, they are the first of those without
        it. Returns fewer if no more new children are found.
        """
        rng = random.Random(seed)
        wanted = count if most is None else min(most, count)
        asked: list[Candidate] = []
        for _ in range(ROUNDS):
            now = state()
            for proposal in named(now, self.policy.ask(now, count, rng), self.operators, rng):
                if len(asked) == wanted:
                    break
                operator = self.operators[proposal.operator]
                made = tagged(proposed(operator, self.context(proposal), rng), proposal)
                if isinstance(made, Candidate) and self.add(made):
                    asked.append(made)
            if len(asked) == wanted:
                break
        return tuple(asked)


def named(
    state: State,
    proposals: Sequence[Proposal],
    operators: Mapping[str, Operator],
    rng: random.Random,
) -> list[Proposal]:
    """The proposals, each with an existing operator.

    An unknown operator is replaced by one that the budget chooses. If no operator takes that number
    of parents, only the first parent is kept.
    """
    found = []
    for proposal in proposals:
        if proposal.operator not in operators:
            able = _able(operators, len(proposal.parents))
            if not able:
                proposal, able = (
                    replace(proposal, parents=proposal.parents[:1]),
                    _able(operators, 1),
                )
            proposal = replace(proposal, operator=budget.choose(state, able, rng))
        found.append(proposal)
    return found


def proposed(operator: Operator, context: Context, rng: random.Random) -> Candidate | GaveUp:
    """An operator's child. If it raises KernelError for a schedule on its way, it gave up: one
    proposal does not end a run."""
    try:
        return operator.propose(context, rng)
    except NotInstalled:
        raise
    except KernelError as error:
        return GaveUp(error.what)


def tagged(child: Candidate | GaveUp, proposal: Proposal) -> Candidate | GaveUp:
    """A child with the tag of its proposal."""
    if isinstance(child, Candidate) and proposal.tag:
        return replace(child, origin=replace(child.origin, tag=proposal.tag))
    return child


def _able(operators: Mapping[str, Operator], parents: int) -> list[str]:
    """Operators that take this number of parents and that are not only used by name."""
    return [
        name
        for name, operator in operators.items()
        if operator.parents == parents and not getattr(operator, "by_name", False)
    ]
