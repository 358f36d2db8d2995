"""Views by shape: the state of a search for one shape of its workload, so that specialists get
children.

A mean over the shapes hides the fastest candidate at one of them. If several kernels may share the
shapes, each shape has its own outcomes and archive. The policy is asked for the whole workload and
for each shape in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ir.estimate.cost import roofline
from ir.machine import Machine
from ir.spec import Spec
from ir.workload import Sizes
from search.core.archive import Archive, Elite
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, at
from search.core.fitness import Baseline, fitness
from search.core.measures import Measure, cell
from search.core.settings import Settings
from search.loop.state import State
from search.warm_start.first import PLAIN


class ShapeView:
    """The outcomes at one shape. best: the fastest there, with its key."""

    def __init__(self, sizes: Sizes, bound_us: float, measures: tuple[Measure, ...]):
        self.sizes = sizes
        self.bound_us = bound_us
        self.measures = measures
        self.outcomes: dict[str, Evaluated] = {}
        self.archive = Archive(tuple(len(m.labels) for m in measures))
        self.best: tuple[str, Evaluation] | None = None

    def learn(self, candidate: Candidate, outcome: Evaluated, machine: Machine) -> bool:
        """Adds the outcome of a candidate at this shape. Returns whether it is the fastest so
        far."""
        here = at(outcome, self.sizes)
        self.outcomes[candidate.key] = outcome if here is None else here
        if here is None:
            return False
        improved = here.faster_than(self.best[1] if self.best else None)
        if improved:
            self.best = candidate.key, here
        if improved or candidate.origin.operator != PLAIN:
            where = cell(self.measures, here.figures, machine)
            baseline = Baseline(self.bound_us, here.time_kind)
            self.archive.add(Elite(where, candidate, here, fitness(here, baseline)))
        return improved

    def state(self, whole: State) -> State:
        """The state for a policy: the same candidates with their outcomes at this shape."""
        found = {k: o for k, o in self.outcomes.items() if k in whole.outcomes}
        if self.best:
            found[self.best[0]] = self.best[1]
        return replace(whole, archive=self.archive, outcomes=found)


def shape_views(
    settings: Settings, spec: Spec, machine: Machine, measures: tuple[Measure, ...]
) -> tuple[ShapeView, ...]:
    """A view for each shape if several kernels may share them; else none."""
    if settings.dispatch < 2 or len(settings.shapes) < 2:
        return ()
    sizes = [shape.sizes for shape in settings.shapes]
    return tuple(ShapeView(s, roofline(spec, machine, s).us, measures) for s in sizes)


def in_turn(seen: Sequence[ShapeView], generation: int) -> tuple[ShapeView | None, ...]:
    """All views, with None for the whole workload. The start moves by two with each generation
    (from 1)."""
    every = (None, *seen)
    start = 2 * (generation - 1) % len(every)
    return (*every[start:], *every[:start])
