"""The outcome of a run: what was found, what it is compared with, and why it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from search.archive import Archive
from search.candidate import Candidate
from search.evaluation import Evaluated, Evaluation
from search.graph import Graph
from search.settings import Settings


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found.

    evaluations: candidates told.  failures: how many of them, by stage.  first_us, plain_us: of
    the autoschedule and of the untiled schedule; None where that failed.  best, evaluation: the
    fastest that is correct; None where nothing is.  fault: what ended the run before its time;
    None where it ended as it should.  tokens, cost: of models' answers.
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
    fault: KernelError | None = None
    tokens: int = 0
    cost: float = 0.0
