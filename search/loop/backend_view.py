"""Views by backend: the state of a search for one of the backends that it races.

The time of a schedule differs between languages. So each backend has its own outcomes, archive and
best. The policy is asked for each backend in turn, and a child is for the backend of its view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ir.machine import Machine
from ir.spec import Spec
from search.core.archive import Archive, Elite
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation
from search.core.fitness import Baseline, fitness
from search.core.graph import Graph
from search.core.measures import Measure, cell
from search.core.settings import Settings
from search.core.transferred import Transferred
from search.loop.shape_view import ShapeView, shape_views
from search.loop.state import State
from search.warm_start.first import PLAIN


class BackendView:
    """The outcomes of one backend's candidates.

    machine: the target as this backend describes it. roots: the seed candidates of the backend,
    then those ported from other backends. best: its fastest candidate. shapes: views of the
    workload's shapes, if several kernels may share them.
    """

    def __init__(
        self,
        backend: str,
        machine: Machine,
        roots: Sequence[Candidate],
        graph: Graph,
        measures: tuple[Measure, ...],
        shapes: tuple[ShapeView, ...] = (),
    ):
        self.backend = backend
        self.machine = machine
        self.roots = list(roots)
        self.graph = graph
        self.measures = measures
        self.shapes = shapes
        self.outcomes: dict[str, Evaluated] = {}
        self.archive = Archive(tuple(len(m.labels) for m in measures))
        self.best: tuple[Candidate, Evaluation] | None = None

    def learn(self, candidate: Candidate, outcome: Evaluated, baseline: Baseline | None) -> bool:
        """Adds an outcome. Returns whether it is the fastest so far at a shape that has a view.

        baseline: None until a candidate is correct.
        """
        self.outcomes[candidate.key] = outcome
        if self._is_brought(candidate):
            self.roots.append(candidate)
        gains = [view.learn(candidate, outcome, self.machine) for view in self.shapes]
        if isinstance(outcome, Evaluation):
            assert baseline is not None, "a correct candidate sets the baseline"
            improved = outcome.faster_than(self.best[1] if self.best else None)
            if improved:
                self.best = candidate, outcome
            if improved or candidate.origin.operator != PLAIN:
                where = cell(self.measures, outcome.figures, self.machine)
                self.archive.add(Elite(where, candidate, outcome, fitness(outcome, baseline)))
        return any(gains)

    def state(self, generation: int, spent: Mapping[str, float], shape: ShapeView | None) -> State:
        """The state for a policy. It leaves out the plain schedule, unless that is the fastest.

        spent: cost by operator, in evaluations. shape: None for the whole workload.
        """
        plain = {c.key for c in self.roots if c.origin.operator == PLAIN}
        slow = plain - {self.best[0].key} if self.best else set()
        state = State(
            generation=generation,
            graph=self.graph,
            archive=self.archive,
            outcomes={k: o for k, o in self.outcomes.items() if k not in slow},
            roots=tuple(c.key for c in self.roots),
            measures=self.measures,
            machine=self.machine,
            spent=spent,
        )
        return shape.state(state) if shape else state

    def transferred(self, run: str) -> Transferred | None:
        """Its best candidate, as a seed for other backends' models; None if none is correct."""
        if self.best is None:
            return None
        candidate, outcome = self.best
        return Transferred(
            target=candidate.target,
            backend=self.backend,
            variant=candidate.variant,
            schedule=candidate.schedule,
            us=outcome.us,
            time_kind=outcome.time_kind,
            run=run,
            source=candidate.source or "",
            edited=candidate.source is not None,
        )

    def _is_brought(self, candidate: Candidate) -> bool:
        parents = candidate.origin.parents[:1]
        return bool(parents) and self.graph.node(parents[0]).backend != self.backend


def backend_views(
    settings: Settings,
    spec: Spec,
    machines: Mapping[str, Machine],
    roots: Sequence[Candidate],
    graph: Graph,
    measures: tuple[Measure, ...],
) -> dict[str, BackendView]:
    """A view for each backend of the settings, in their order."""
    return {
        name: BackendView(
            name,
            machines[name],
            [c for c in roots if c.backend == name],
            graph,
            measures,
            shape_views(settings, spec, machines[name], measures),
        )
        for name in settings.backends
    }


def merged(archives: Iterable[Archive]) -> Archive:
    """One archive with the elites of several archives of the same measures; at equal fitness the
    first stays."""
    first, *others = archives
    found = Archive(first.shape)
    for archive in (first, *others):
        for elite in archive:
            found.add(elite)
    return found
