"""The outcome of a run: what was found, what it is compared with, and why it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from search.core.archive import Archive
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, at
from search.core.graph import Graph
from search.core.model_use import ModelUse
from search.core.settings import Settings
from search.core.shape_dispatch import ShapeDispatch
from search.core.workload import Shape


@dataclass(frozen=True, slots=True)
class AtShape:
    """One shape of a workload; times in microseconds, None where they are not known.

    single_us: of the kernel that is best over all shapes.  us: of the one that is run here, with
    its number among those of the dispatch (0: the best over all).
    """

    shape: Shape
    first_us: float | None
    single_us: float | None
    us: float | None
    kernel: int
    roofline_us: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found.

    evaluations: candidates told.  failures: how many of them, by stage.  first_us, plain_us: of
    the autoschedule and of the untiled schedule; None where that failed.  best, evaluation: the
    fastest that is correct; None where nothing is.  fault: what ended the run before its time;
    None where it ended as it should.  models: what it asked of models; None where it asked none.
    same_source: how many candidates took the outcome of another, as they come to its source.
    """

    run: str
    settings: Settings
    evaluations: int
    failures: Mapping[str, int]
    first: Candidate
    first_us: float | None
    plain_us: float | None
    best: Candidate | None
    evaluation: Evaluation | None
    roofline_us: float
    stopped_because: str
    seconds: float
    archive: Archive
    graph: Graph
    outcomes: Mapping[str, Evaluated]
    bounds_us: tuple[float, ...] = ()
    dispatch: ShapeDispatch | None = None
    fault: KernelError | None = None
    models: ModelUse | None = None
    same_source: int = 0

    def by_shape(self) -> tuple[AtShape, ...]:
        """What was found at each shape of a workload; nothing where there is one shape."""
        shapes = self.settings.workload
        first = self.outcomes.get(self.first.key)
        rows = []
        for number, (shape, bound) in enumerate(zip(shapes, self.bounds_us, strict=True)):
            before = at(first, shape.sizes) if first else None
            single = self.evaluation.at(shape.sizes) if self.evaluation else None
            found, kernel = single.us if single else None, 0
            if self.dispatch:
                found, kernel = self.dispatch.times[number], self.dispatch.chosen[number]
            rows.append(
                AtShape(
                    shape,
                    before.us if before else None,
                    single.us if single else None,
                    found,
                    kernel,
                    bound,
                )
            )
        return tuple(rows)
