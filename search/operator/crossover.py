"""Crossover: takes each decision of a schedule from one of two parents."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ir.schedule import Decision, Schedule
from ir.verify import facts
from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp

Gene = tuple[str, str, int]  # verb, subject, and the position among several such decisions


@dataclass(frozen=True, slots=True)
class Crossover:
    """Takes for each (verb, subject) the decision of one of two parents, or its absence.

    Combinations that do not lower or are known are dropped, up to `tries` of them. If the parents
    have different variants, the first one's stays, and only decisions on common tensors and indices
    are taken from the second. If that fails, its whole schedule is taken as far as it lowers.
    """

    name: str = "crossover"
    tries: int = 24
    parents: int = 2
    remote: bool = False

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child of the first two parents."""
        one, two = (p.schedule for p in context.parents[:2])
        variant, other = (p.variant for p in context.parents[:2])
        names = {*facts(variant).ranges, *facts(variant).tensors}
        differing = [
            g
            for g in _differing(_genes(one), _genes(two))
            if variant == other or g[1].removesuffix(".outer") in names
        ]
        fault = GaveUp("the parents differ in fewer than two decisions")
        for _ in range(self.tries if len(differing) > 1 else 0):
            taken = frozenset(g for g in differing if rng.random() < 0.5)
            found = context.offer(mix(one, two, taken), self.name, _note(differing, taken))
            if isinstance(found, Candidate):
                return found
            reason = f"none of {self.tries} mixtures is new and legal; the last: {found.reason}"
            fault = GaveUp(reason)
        if variant == other:
            return fault
        note = "the second parent's schedule, as far as it lowers on the first one's equations"
        return context.offer_variant(variant, self.name, note, two)


def mix(one: Schedule, two: Schedule, taken: frozenset[Gene]) -> Schedule:
    """The first schedule, with the decisions in `taken` as in the second, where they may be
    missing.

    A decision of the second only follows the same decision as there.
    """
    ours, theirs = _genes(one), _genes(two)
    order = list(ours)
    last = -1
    for gene in theirs:
        if gene not in ours:
            order.insert(last + 1, gene)
        last = order.index(gene)
    chosen = ((theirs if gene in taken else ours).get(gene) for gene in order)
    return Schedule(one.kernel, tuple(d for d in chosen if d is not None))


def _genes(schedule: Schedule) -> dict[Gene, Decision]:
    genes: dict[Gene, Decision] = {}
    for decision in schedule.decisions:
        rank = sum(g[:2] == (decision.verb, decision.subject) for g in genes)
        genes[decision.verb, decision.subject, rank] = decision
    return genes


def _differing(ours: dict[Gene, Decision], theirs: dict[Gene, Decision]) -> list[Gene]:
    every = dict.fromkeys((*ours, *theirs))
    return [g for g in every if ours.get(g) != theirs.get(g)]


def _note(differing: list[Gene], taken: frozenset[Gene]) -> str:
    names = [f"{gene[0]}({gene[1]})" for gene in differing if gene in taken]
    return f"from the second parent: {', '.join(names) or 'nothing'}"
