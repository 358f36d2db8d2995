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
from search.core.workload import WeightedShape


@dataclass(frozen=True, slots=True)
class AtShape:
    """One shape of a workload; times in microseconds, None where they are not known."""

    shape: WeightedShape
    first_us: float | None
    single_us: float | None  # of the kernel that is best over all shapes
    # Of the kernel that runs here; `kernel` is its number in the dispatch (0: best over all).
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
    # Of the first schedule and of the untiled one; None: it failed, or was not tried.
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
    # Number of candidates that took the outcome of another one with the same source.
    same_source: int = 0
    # Number of candidates that were too slow to be checked; none of them is a failure.
    slow: int = 0

    @property
    def backend(self) -> str:
        """The winner's; that of the first candidate where nothing is correct."""
        return (self.best or self.first).backend

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
