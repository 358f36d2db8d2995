"""What a store holds of a run, and what a search asks of a store."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.graph import Graph
from search.core.settings import Settings

_OF_NETWORK = re.compile(r"(\w+)_[0-9a-f]{8}")  # as `ir/partition/canonical.py` names it


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One line of a run's log."""

    kind: str  # started, asked, spent, same, lost, told, refused or stopped
    key: str
    seconds: float  # of the run's working time
    # Words; of `asked` the generation; of `refused`, whose key is the generation, a request of which
    # nothing came and why, as JSON; of `same` the candidate with the same source, whose outcome
    # it took.
    detail: str


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """A request to a model and what came back, as texts of JSON."""

    digest: str  # of the request
    rank: int  # number of earlier equal requests of the run
    request: str
    reply: str
    seconds: float  # duration


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it is stored."""

    run: str
    settings: Settings
    environment: Mapping[str, Any]
    generations: tuple[tuple[Candidate, ...], ...]  # the candidates that were asked, in order
    outcomes: Mapping[str, Evaluated]  # by key
    events: tuple[StoredEvent, ...]

    @property
    def seconds(self) -> float:
        """The working time of the run so far."""
        return max((e.seconds for e in self.events), default=0.0)

    def keys(self, kind: str) -> frozenset[str]:
        """The keys that have an event of a kind."""
        return frozenset(e.key for e in self.events if e.kind == kind)

    @property
    def same_source(self) -> int:
        """How many candidates took the outcome of another, as they come to its source."""
        return len(self.keys("same"))

    def graph(self) -> Graph:
        """All candidates, with their edges."""
        graph = Graph()
        for generation in self.generations:
            for c in generation:
                graph.add(c)
        return graph


def stem_of(kernel: str) -> str:
    """The name of a network's kernel without its digest; empty where it has none."""
    found = _OF_NETWORK.fullmatch(kernel)
    return found[1] if found else ""


class Leases(Protocol):
    """Which candidates this process evaluates, for others that share a store and want the same.

    A candidate is named by its context and its key. What a process leased is given back where it is
    killed.
    """

    def claim(self, wanted: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Those that are this process's to evaluate from now on, until their outcomes are kept or
        they are released; the others are another's."""

    def free(self, wanted: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Those that no process evaluates now."""

    def release(self, done: Collection[tuple[str, str]]) -> None:
        """Gives back what came to nothing."""


class Keeper(Protocol):
    """Keeps runs, each method whole or not at all; KernelError where it cannot."""

    url: str  # the path or URL of the store, without a password; empty where nothing is kept

    @property
    def leases(self) -> Leases | None:
        """None where no other machine shares it."""

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """A new run; its name."""

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """A generation is about to be evaluated. One that was asked before is replaced."""

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """What became of a candidate. context: digest of all that the outcome depends on."""

    def log(self, run: str, event: StoredEvent) -> None:
        """Adds a line to a run's log."""

    def cached(self, key: str, context: str) -> Evaluated | None:
        """What became of a candidate in any run, in the same context; the latest."""

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Keeps an exchange; one of the same digest and rank is replaced."""

    def exchanges(self, run: str) -> tuple[StoredExchange, ...]:
        """All exchanges of a run, in the order in which they ended."""

    def secret(self) -> str:
        """The store's own random text, the same each time: what checks are drawn by comes of it."""

    def lessons(self) -> Mapping[str, str]:
        """The texts of the lessons that it keeps, by name."""

    def learned(self, name: str, text: str) -> None:
        """Keeps a lesson in place of an earlier one of the same name."""

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The names of the runs of a kernel, the latest first."""

    def runs_alike(self, kernel: str) -> tuple[str, ...]:
        """The names of the runs of other kernels of networks that store tensors of the same names, the
        latest first (`stem_of`)."""

    def started(self) -> Mapping[str, float]:
        """When each run was started, in seconds since 1970, by its name; the latest first."""

    def load(self, run: str) -> StoredRun:
        """A run; KernelError where there is none of that name."""

    def resume(self, run: str) -> StoredRun:
        """A run that this process goes on with; KernelError where there is none of that name, or
        another process works on it."""

    def close(self) -> None:
        """Lets go of what it holds."""
