"""Tune: a sweep of the first parent's decisions, by what the trials so far have shown."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ir.edits.edits import difference
from ir.schedule import Schedule
from search.core.candidate import Candidate
from search.loop.context import Context, GaveUp, Parent
from search.operator.space import SearchSpace
from search.operator.study import TPE, StudyParameter, Trial, asked


@dataclass(frozen=True, slots=True)
class Tune:
    """Asks a sampler for settings of what the verbs list for the first parent's schedule.

    Each outcome of a candidate with the parent's variant is a trial of the study. Of `looks`
    settings that lower and are new, the one is offered that the forecast expects most of: a
    forecast chooses among settings, but is never told to the study, whose times are obtained in
    one way.
    """

    name: str = "tune:tpe"
    sampler: str = TPE  # `tpe`, or `cma` over the ordinal parameters
    looks: int = 8
    # How many parameters are swept at a time, drawn anew for each child, the others stay as the
    # parent has them; 0: all.
    width: int = 6
    tries: int = 48  # settings that are asked for at most, of each width
    # Where none of them is legal, half as many parameters are swept, down to one.
    narrows: bool = False
    parents: int = 1
    remote: bool = False
    by_name: bool = False  # no budget chooses it

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child with other settings of the first parent's decisions."""
        base = context.parents[0].schedule
        trials = tuple(_told(context))
        seen = [schedule for schedule, _ in trials]
        variant = context.parents[0].variant
        space = SearchSpace.of(variant, base, context.machine, context.sizes, seen)
        if not space.parameters:
            return GaveUp("there is nothing to tune")
        widths = list(self._widths(len(space.parameters)))
        for width in widths:
            offered = islice(self._offered(context, space, trials, width, rng), self.looks)
            if best := min(offered, key=context.expected_us, default=None):
                return best
        return GaveUp(f"none of {self.tries * len(widths)} settings is new and legal")

    def _widths(self, most: int) -> Iterator[int]:
        """How many parameters are swept, in turn, until a setting is legal. most: all there are."""
        width = min(self.width or most, most)
        yield width
        while self.narrows and width > 1:
            width //= 2
            yield width

    def _offered(
        self,
        context: Context,
        space: SearchSpace,
        trials: tuple[tuple[Schedule, float | None], ...],
        width: int,
        rng: random.Random,
    ) -> Iterator[Candidate]:
        """Children that are new and lower, of the settings that the sampler asks for."""
        names = list(space.parameters)
        swept = rng.sample(names, width)
        axes = {
            name: StudyParameter(len(p.values), p.ordinal)
            for name, p in space.parameters.items()
            if name in swept
        }
        told = [Trial(space.setting(schedule), us) for schedule, us in trials]
        start = space.setting(space.base)
        settings = asked(self.sampler, axes, told, start, rng.getrandbits(32))
        for setting in islice(settings, self.tries):
            schedule = space.schedule(setting)
            note = "; ".join(str(e) for e in difference(space.base, schedule))
            found = context.offer(schedule, self.name, note or "another order of loops")
            if isinstance(found, Candidate):
                yield found


def _told(context: Context) -> Iterator[tuple[Schedule, float | None]]:
    """The schedules of the parent's variant that were evaluated, in the order of telling;
    None for the time of one that failed. A source of its own says nothing of its schedule."""
    first = context.parents[0].candidate
    for key, outcome in context.outcomes.items():
        candidate = context.graph.node(key)
        same = (candidate.variant, candidate.target) == (first.variant, first.target)
        if same and candidate.source is None:
            yield Parent(candidate).schedule, outcome.us
