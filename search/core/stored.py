"""The stored data of a run, and the interface of a store."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.graph import Graph
from search.core.settings import Settings

_OF_NETWORK = re.compile(r"(\w+)_[0-9a-f]{8}")  # the form of names by `ir/partition/canonical.py`


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One entry of a run's log."""

    kind: str  # started, asked, spent, same, lost, told, refused or stopped
    key: str
    seconds: float  # working time of the run
    # A text that depends on the kind. `asked`: the generation. `refused`: JSON with a request that
    # gave nothing and the reason; its key is the generation. `same`: the candidate with the same
    # source whose outcome was taken.
    detail: str


@dataclass(frozen=True, slots=True)
class StoredExchange:
    """A request to a model and its reply, both as JSON."""

    digest: str  # of the request
    rank: int  # number of earlier equal requests of the run
    request: str
    reply: str
    seconds: float  # duration


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as stored."""

    run: str
    settings: Settings
    environment: Mapping[str, Any]
    generations: tuple[tuple[Candidate, ...], ...]  # the candidates that were asked for, in order
    outcomes: Mapping[str, Evaluated]  # by key
    events: tuple[StoredEvent, ...]

    @property
    def seconds(self) -> float:
        """The working time of the run so far, in seconds."""
        return max((e.seconds for e in self.events), default=0.0)

    def keys(self, kind: str) -> frozenset[str]:
        """The keys of all events of a kind."""
        return frozenset(e.key for e in self.events if e.kind == kind)

    @property
    def same_source(self) -> int:
        """How many candidates took the outcome of another candidate with the same source."""
        return len(self.keys("same"))

    def graph(self) -> Graph:
        """The graph of all candidates."""
        graph = Graph()
        for generation in self.generations:
            for c in generation:
                graph.add(c)
        return graph


def stem_of(kernel: str) -> str:
    """The name of a network's kernel without its digest; empty for other names."""
    found = _OF_NETWORK.fullmatch(kernel)
    return found[1] if found else ""


class Leases(Protocol):
    """Leases on candidates, for processes that share a store and want the same evaluations.

    A candidate is named by its context and its key. The leases of a killed process are released.
    """

    def claim(self, wanted: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Leases candidates for this process until their outcomes are kept or they are released.

        Returns those that it got. Other processes evaluate the rest.
        """

    def free(self, wanted: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """Those that no process evaluates now."""

    def release(self, done: Collection[tuple[str, str]]) -> None:
        """Releases candidates that got no outcome."""


class Keeper(Protocol):
    """Stores runs. Each method is atomic, and raises KernelError if it fails."""

    url: str  # the path or URL of the store, without a password; empty if nothing is kept

    @property
    def leases(self) -> Leases | None:
        """The leases; None if no other machine shares the store."""

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """Adds a new run and returns its name."""

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """Stores a generation before it is evaluated. Replaces a generation of the same number."""

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """Stores the outcome of a candidate. context: digest of everything that the outcome depends
        on."""

    def log(self, run: str, event: StoredEvent) -> None:
        """Adds an entry to a run's log."""

    def cached(self, key: str, context: str) -> Evaluated | None:
        """The latest outcome of a candidate in the same context, in any run; None if there is
        none."""

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Stores an exchange. Replaces one with the same digest and rank."""

    def exchanges(self, run: str) -> tuple[StoredExchange, ...]:
        """All exchanges of a run, in the order in which they ended."""

    def secret(self) -> str:
        """The store's random text, which never changes. Checks derive their random draws from
        it."""

    def lessons(self) -> Mapping[str, str]:
        """The texts of the stored lessons, by name."""

    def learned(self, name: str, text: str) -> None:
        """Stores a lesson. Replaces one of the same name."""

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The names of the runs of a kernel, latest first."""

    def runs_alike(self, kernel: str) -> tuple[str, ...]:
        """The names of runs of other networks' kernels with the same output names, latest first
        (see `stem_of`)."""

    def started(self) -> Mapping[str, float]:
        """The start time of each run in seconds since 1970, by run name, latest first."""

    def load(self, run: str) -> StoredRun:
        """A run. Raises KernelError if there is none of that name."""

    def resume(self, run: str) -> StoredRun:
        """A run that this process continues. Raises KernelError if there is none of that name, or
        if another process works on it."""

    def close(self) -> None:
        """Releases files and connections."""
