"""Hooks: the interfaces of evaluators and of shared model access."""

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

# Waits for a model. Returns a function that applies the advice; None if it is not accepted.
Advice = Callable[[], Callable[[], None] | None]


class Evaluator(Protocol):
    """Evaluates candidates. A search that asks models calls it from several threads."""

    # By backend: digest of everything besides the candidate that an outcome depends on: sizes,
    # machine, toolchain.
    contexts: Mapping[str, str]
    environment: Mapping[str, Any]  # the same with more details for a person, as plain data

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields (position, outcome) for each candidate, in any order. Gives up the rest after
        `seconds`."""


class Unavailable(KernelError):
    """No evaluator is available at present, which is not the candidates' fault. The run can
    continue later."""


@runtime_checkable
class Foresighted(Protocol):
    """An evaluator that can begin a candidate before a call of `evaluate` asks for it."""

    def ahead(self, asked: Candidate) -> None:
        """Begins to evaluate if a worker is free. The next call of `evaluate`, from any thread,
        takes over what it asks for; the rest is cancelled."""


@runtime_checkable
class Hurried(Protocol):
    """An evaluator that need not check candidates that are too slow to be useful."""

    def fastest(self, backend: str, us: float) -> None:
        """Reports the best correct time of a backend in microseconds. Much slower candidates may
        then end as a `Failure` that is `slow`."""


class ModelHooks(Protocol):
    """The shared state of operators that ask models."""

    def begin(self, run: str) -> None:
        """Reports the name of the run before the first request."""

    def advised(
        self,
        told: int,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        refused: Sequence[Refused],
    ) -> Advice | None:
        """A request for better prompts if one is due after this many evaluations, else None.

        Its result is a function that applies the answer, or None. refused: requests that gave
        nothing.
        """

    def metered(self) -> AbstractContextManager[Meter]:
        """Measures what this thread's exchanges take."""

    def allow(self, seconds: float) -> None:
        """Sets how long answers may be waited for, if the search has a time limit."""

    def rest(self) -> bool:
        """Waits until models that gave no answer may be asked again, within the time that is left.
        Returns False if the wait has been long enough."""

    def use(self, graph: Graph, outcomes: Mapping[str, Evaluated]) -> ModelUse:
        """The requests so far, with their results."""

    def close(self) -> None:
        """Cancels everything in flight. No request may follow."""
