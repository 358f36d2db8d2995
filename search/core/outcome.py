"""The outcome of a run: the best kernel, its comparisons, and the reason why the run stopped."""

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
from search.core.workload import WeightedShape


@dataclass(frozen=True, slots=True)
class AtShape:
    """The result at one shape of a workload. Times are in microseconds; None if unknown."""

    shape: WeightedShape
    first_us: float | None
    single_us: float | None  # of the kernel that is best over all shapes
    # Time of the kernel that the dispatch runs here. `kernel` is its number in the dispatch; 0 is
    # the best over all shapes.
    us: float | None
    kernel: int
    roofline_us: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    run: str
    settings: Settings
    evaluations: int  # number of candidates with an outcome
    failures: Mapping[str, int]  # by stage
    first: Candidate
    # Times of the first schedule and of the untiled one; None: it failed, or was not tried.
    first_us: float | None
    plain_us: float | None
    # The fastest correct candidate; None: there is none.
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
    # The error that ended the run early; None: it ended normally.
    fault: KernelError | None = None
    # None: no model was asked.
    models: ModelUse | None = None
    # Number of candidates that took the outcome of another candidate with the same source.
    same_source: int = 0
    # Number of candidates that were too slow to be checked. They do not count as failures.
    slow: int = 0

    @property
    def backend(self) -> str:
        """The backend of the best candidate; of the first candidate if none is correct."""
        return (self.best or self.first).backend

    def by_shape(self) -> tuple[AtShape, ...]:
        """The result at each shape of the workload; empty without a workload."""
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
