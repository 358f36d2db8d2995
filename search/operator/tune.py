"""Tune: a sweep over the first parent's decisions, guided by the trials so far."""

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
    """Asks a sampler for settings of the decisions that the verbs allow for the first parent's
    schedule.

    Each outcome of a candidate with the parent's variant is a trial of the study. Among `looks` new
    settings that lower, the one with the best forecast is offered. The forecast only chooses among
    settings. It is not a trial, because all times of a study must be of one kind.
    """

    name: str = "tune:tpe"
    sampler: str = TPE  # `tpe`, or `cma` over the ordinal parameters
    looks: int = 8
    # Number of parameters that are swept at a time, drawn for each child; the others keep the
    # parent's values. 0: all.
    width: int = 6
    tries: int = 48  # largest number of settings to ask for, at each width
    # If none of them is legal, half as many parameters are swept, down to one.
    narrows: bool = False
    parents: int = 1
    remote: bool = False
    by_name: bool = False  # only policies choose it, by name

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child with other values for the first parent's decisions."""
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
        """The numbers of parameters to sweep, in turn, until a setting is legal. most: all
        parameters."""
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
        """New children that lower, from the settings that the sampler proposes."""
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
    """The evaluated schedules of the parent's variant, in the order of their outcomes; the time is
    None if it failed.

    Edited sources are left out, because their schedules do not describe them.
    """
    first = context.parents[0].candidate
    for key, outcome in context.outcomes.items():
        candidate = context.graph.node(key)
        same = (candidate.variant, candidate.target) == (first.variant, first.target)
        if same and candidate.source is None:
            yield Parent(candidate).schedule, outcome.us
