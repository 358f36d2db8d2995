"""A page: all that a report shows, as plain values; nothing here knows where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from search.core.quantity import ratio


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One evaluation."""

    number: int
    operator: str
    us: float | None  # None where it failed, at `stage` and for `reason`
    stage: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LineageStep:
    """One ancestor of the winner, or the winner."""

    number: int
    operator: str
    us: float | None
    edits: tuple[str, ...]  # what sets it apart from the step before, a line each
    others: tuple[int, ...] = ()  # what else it was crossed with, by number


@dataclass(frozen=True, slots=True)
class Engine:
    """The share of the time that an engine is busy in the first and in the best kernel."""

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

    at: tuple[int, ...]  # its bin on each axis
    us: float
    number: int
    winner: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveMaps:
    """The elites by cell; two axes are drawn, a third becomes one map each."""

    axes: tuple[ArchiveAxis, ...]
    cells: tuple[ArchiveCell, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text to show."""

    name: str
    body: str
    marked: frozenset[int] = frozenset()  # the lines (from 0) that are not in the text it came from

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
    us: float | None  # of the one that is run here, `kernel` by its number
    kernel: int
    roofline_us: float


@dataclass(frozen=True, slots=True)
class HeldOutRow:
    """A shape that nothing was tuned for."""

    shape: str
    kernel: int
    us: float | None
    single_us: float | None
    first_us: float | None  # of the autoschedule there
    said: str  # `correct`, or what is wrong


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """What an operator's children came to."""

    name: str
    children: int
    correct: int
    best: int  # how many were the fastest so far
    # The best factor of a child's time under its parent's; None where nothing can be compared.
    gain: float | None


@dataclass(frozen=True, slots=True)
class BackendRow:
    """What the candidates of a backend came to, where several were raced."""

    name: str
    evaluated: int
    correct: int
    failed: int
    # Microseconds; None where nothing is correct.
    first_us: float | None
    best_us: float | None
    schedule: str  # what its best has that its autoschedule has not
    winner: bool = False


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A version of the prompts."""

    name: str
    made: str  # how it came about
    children: int
    failed: int
    gain: float  # as of an operator


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run gave. us: microseconds; None where nothing of the sort was correct.

    levels are `first` (the autoschedule), `plain` (the untiled schedule), `best` and
    `roofline` (the machine's bound); of several shapes weighted geometric means.
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
    facts: Mapping[str, str]  # how it was obtained, by name
    shapes: tuple[ShapeRow, ...] = ()  # of a workload of several
    guards: tuple[str, ...] = ()  # by which kernels share them, as lines
    # Other shapes that these were tried at, and what they come to in words.
    held_out: tuple[HeldOutRow, ...] = ()
    held_out_words: str = ""
    backends: tuple[BackendRow, ...] = ()  # where several were raced
    operators: tuple[OperatorRow, ...] = ()
    # What was asked of models, in words; empty where none was.
    models: str = ""
    prompts: tuple[PromptRow, ...] = ()  # their versions

    @property
    def speedup(self) -> float | None:
        """Of the best over the first schedule."""
        return ratio(self.first_us, self.best_us)

    @property
    def over_plain(self) -> float | None:
        """Of the best over the plain schedule."""
        return ratio(self.plain_us, self.best_us)

    @property
    def roofline_share(self) -> float | None:
        """How much of the machine's bound the best reaches."""
        return ratio(self.roofline_us, self.best_us)

    @property
    def failed(self) -> tuple[EvaluationRow, ...]:
        """The trials that failed, in order."""
        return tuple(t for t in self.trials if t.us is None)


@dataclass(frozen=True, slots=True)
class Page:
    """One report."""

    title: str
    command: str  # what made it
    date: str
    results: tuple[RunReport, ...]
    facts: Mapping[str, str]  # the machine and versions, by name
