"""Hooks: what a search asks of an evaluator, and of what its operators that ask models share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.graph import Graph
from search.core.model_use import Meter, ModelUse
from search.loop.context import Refused

# Waits for a model; gives what puts its advice into effect, None where it is not taken.
Advice = Callable[[], Callable[[], None] | None]


class Evaluator(Protocol):
    """Finds out what becomes of candidates; a search that asks models calls it from threads."""

    # By backend: digest of all that an outcome depends on beside the candidate: sizes, machine,
    # toolchain.
    contexts: Mapping[str, str]
    environment: Mapping[str, Any]  # the same and more for a person, as plain data

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """(position, outcome) of each, in any order; gives up the rest after `seconds`."""


class Unavailable(KernelError):
    """Nothing evaluates candidates at present, through no fault of theirs. The run can go on later."""


@runtime_checkable
class Foresighted(Protocol):
    """An evaluator that can begin with a candidate before a call of `evaluate` asks for it."""

    def ahead(self, asked: Candidate) -> None:
        """Begins, where a worker is free. The next call of `evaluate`, in whatever thread, takes what
        it asks for over; what it does not ask for is given up."""


@runtime_checkable
class Hurried(Protocol):
    """An evaluator that need not check what is too slow to be of use."""

    def fastest(self, backend: str, us: float) -> None:
        """The fastest correct candidate of a backend takes so many microseconds by now. What takes much
        longer may come to a `Failure` that is `slow`."""


class ModelHooks(Protocol):
    """What operators that ask models share."""

    def begin(self, run: str) -> None:
        """Is told the run's name before anything is asked."""

    def advised(
        self,
        told: int,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        refused: Sequence[Refused],
    ) -> Advice | None:
        """A request for better prompts that is due after so many evaluations; None where none is.
        It gives a function that applies what was answered, or None. refused: requests of which
        nothing came."""

    def metered(self) -> AbstractContextManager[Meter]:
        """Counts what this thread's exchanges take."""

    def allow(self, seconds: float) -> None:
        """Is told how long answers may be waited for, where the search has a limit of time."""

    def rest(self) -> bool:
        """Waits until models that gave no answer may be asked again, but not beyond the time that
        is left; False where they have been waited for long enough."""

    def use(self, graph: Graph, outcomes: Mapping[str, Evaluated]) -> ModelUse:
        """What was asked so far, and what came of it."""

    def close(self) -> None:
        """Breaks off what is in flight; nothing is asked afterwards."""
