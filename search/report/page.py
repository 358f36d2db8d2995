"""A page: the contents of a report as plain values, independent of their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from search.core.quantity import ratio


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One evaluation."""

    number: int
    operator: str
    us: float | None  # None if it failed, at `stage` and for `reason`
    stage: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LineageStep:
    """The winner or one of its ancestors."""

    number: int
    operator: str
    us: float | None
    edits: tuple[str, ...]  # the difference from the step before, a line each
    others: tuple[int, ...] = ()  # numbers of further parents


@dataclass(frozen=True, slots=True)
class Engine:
    """The share of the time that an engine is busy, in the first and in the best kernel."""

    name: str
    first: float
    best: float


@dataclass(frozen=True, slots=True)
class ArchiveAxis:
    """One measure of an archive and the labels of its bins, in order."""

    name: str
    bins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveCell:
    """A filled cell of an archive."""

    at: tuple[int, ...]  # bin on each axis
    us: float
    number: int
    winner: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveMaps:
    """The elites by cell. Two axes are drawn; there is one map for each bin of a third."""

    axes: tuple[ArchiveAxis, ...]
    cells: tuple[ArchiveCell, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text to show."""

    name: str
    body: str
    marked: frozenset[int] = frozenset()  # lines (from 0) that differ from the original text

    @property
    def lines(self) -> tuple[tuple[str, bool], ...]:
        """Each line, and whether it is marked."""
        return tuple((line, i in self.marked) for i, line in enumerate(self.body.splitlines()))


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One shape of a workload."""

    shape: str
    weight: float
    first_us: float | None
    single_us: float | None  # of the kernel that is best over all shapes
    us: float | None  # of the kernel that runs here; `kernel` is its number
    kernel: int
    roofline_us: float


@dataclass(frozen=True, slots=True)
class HeldOutRow:
    """A held-out shape."""

    shape: str
    kernel: int
    us: float | None
    single_us: float | None
    first_us: float | None  # of the autoschedule at this shape
    said: str  # `correct`, or the fault


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """The results of an operator's children."""

    name: str
    children: int
    correct: int
    best: int  # number of children that were the fastest when their outcome was known
    # The best speed-up of a child over its parent; None if no pair is comparable.
    gain: float | None


@dataclass(frozen=True, slots=True)
class BackendRow:
    """The results of one backend in a race."""

    name: str
    evaluated: int
    correct: int
    failed: int
    # Microseconds; None if no candidate is correct.
    first_us: float | None
    best_us: float | None
    schedule: str  # decisions of its best that differ from its autoschedule
    winner: bool = False


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A version of the prompts."""

    name: str
    made: str  # how it was made
    children: int
    failed: int
    gain: float  # as in `OperatorRow`


@dataclass(frozen=True, slots=True)
class RunReport:
    """The results of one run. us: microseconds; None if no such candidate was correct.

    The levels are `first` (the autoschedule), `plain` (the untiled schedule), `best` and
    `roofline`. For several shapes they are weighted geometric means.
    """

    run: str
    kernel: str
    title: str
    target: str
    backend: str
    shape: str
    correct_by: str
    time_kind: str
    first_us: float | None
    plain_us: float | None
    best_us: float | None
    roofline_us: float | None
    stopped_because: str
    trials: tuple[EvaluationRow, ...]
    lineage: tuple[LineageStep, ...]
    engines: tuple[Engine, ...]
    archive: ArchiveMaps
    texts: tuple[Text, ...]
    facts: Mapping[str, str]  # how results were obtained, by name
    shapes: tuple[ShapeRow, ...] = ()  # of a workload with several shapes
    guards: tuple[str, ...] = ()  # the choice of kernels, as lines
    # Results at held-out shapes, and a summary.
    held_out: tuple[HeldOutRow, ...] = ()
    held_out_words: str = ""
    backends: tuple[BackendRow, ...] = ()  # of a race
    operators: tuple[OperatorRow, ...] = ()
    # The use of models, in words; empty if there was none.
    models: str = ""
    prompts: tuple[PromptRow, ...] = ()  # versions of the prompts

    @property
    def speedup(self) -> float | None:
        """The speed-up of the best over the first schedule."""
        return ratio(self.first_us, self.best_us)

    @property
    def over_plain(self) -> float | None:
        """The speed-up of the best over the plain schedule."""
        return ratio(self.plain_us, self.best_us)

    @property
    def roofline_share(self) -> float | None:
        """The share of the roofline that the best reaches."""
        return ratio(self.roofline_us, self.best_us)

    @property
    def failed(self) -> tuple[EvaluationRow, ...]:
        """The failed trials, in order."""
        return tuple(t for t in self.trials if t.us is None)


@dataclass(frozen=True, slots=True)
class Page:
    """A report."""

    title: str
    command: str  # the command that made it
    date: str
    results: tuple[RunReport, ...]
    facts: Mapping[str, str]  # the machine and versions, by name
