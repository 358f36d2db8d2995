"""A store in memory: its runs and jobs end with the process."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange, StoredRun, stem_of
from search.core.stored_job import StoredJob, StoredRound


@dataclass(slots=True)
class _Run:
    """A run of this process."""

    settings: Settings
    environment: Mapping[str, Any]
    generations: dict[int, tuple[Candidate, ...]] = field(default_factory=dict)
    outcomes: dict[str, Evaluated] = field(default_factory=dict)
    events: list[StoredEvent] = field(default_factory=list)


class Forgetful:
    """Keeps runs in memory; see `stored.Keeper`. They cannot be resumed by another process."""

    url = ""
    leases = None

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._runs: dict[str, _Run] = {}
        self._secret = secrets.token_hex(16)
        self._started: dict[str, float] = {}
        self._outcomes: dict[tuple[str, str], Evaluated] = {}
        self._exchanges: dict[str, dict[tuple[str, int], StoredExchange]] = {}

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """Adds a new run and returns its name."""
        stem = f"{chosen.kernel}-{chosen.target}"
        self._counts[stem] += 1
        run = f"{stem}-{self._counts[stem]}"
        self._runs[run] = _Run(chosen, dict(environment))
        self._started = {run: time.time(), **self._started}
        return run

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """Keeps a generation. Replaces a generation of the same number."""
        self._runs[run].generations[generation] = tuple(candidates)

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """Keeps the outcome of a candidate."""
        self._outcomes[key, context] = outcome
        self._runs[run].outcomes[key] = outcome

    def log(self, run: str, event: StoredEvent) -> None:
        """Keeps an entry of a run's log."""
        self._runs[run].events.append(event)

    def cached(self, key: str, context: str) -> Evaluated | None:
        """The latest outcome of a candidate in the same context."""
        return self._outcomes.get((key, context))

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Keeps an exchange."""
        of_run = self._exchanges.setdefault(run, {})
        of_run.pop((exchange.digest, exchange.rank), None)
        of_run[exchange.digest, exchange.rank] = exchange

    def exchanges(self, run: str) -> tuple[StoredExchange, ...]:
        """All exchanges of a run, in the order in which they ended."""
        return tuple(self._exchanges.get(run, {}).values())

    def secret(self) -> str:
        """A random text of this process."""
        return self._secret

    def lessons(self) -> dict[str, str]:
        """Empty, because no lesson is kept."""
        return {}

    def learned(self, name: str, text: str) -> None:
        """Does nothing, because no lesson is kept."""

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The runs of a kernel, latest first."""
        return tuple(r for r in self._started if self._runs[r].settings.kernel == kernel)

    def runs_alike(self, kernel: str) -> tuple[str, ...]:
        """The runs of other networks' kernels with the same output names, latest first."""
        stem, names = stem_of(kernel), {r: self._runs[r].settings.kernel for r in self._started}
        return tuple(r for r, n in names.items() if stem and n != kernel and stem_of(n) == stem)

    def started(self) -> dict[str, float]:
        """The start time of each run of this process by name, latest first."""
        return dict(self._started)

    def load(self, run: str) -> StoredRun:
        """A run of this process. Raises KernelError for any other."""
        if run not in self._runs:
            raise KernelError(
                f"run `{run}` is not stored", where="--no-store", hint="leave --no-store out"
            )
        found = self._runs[run]
        generations = tuple(found.generations[n] for n in sorted(found.generations))
        return StoredRun(
            run,
            found.settings,
            found.environment,
            generations,
            dict(found.outcomes),
            tuple(found.events),
        )

    resume = load

    def close(self) -> None:
        """Does nothing, because there is nothing to close."""


class ForgetfulJobs:
    """Keeps jobs in memory; see `stored_job.JobKeeper`."""

    def __init__(self, store: Forgetful) -> None:
        self._store = store
        self._jobs: dict[str, tuple[str, float]] = {}
        self._rounds: dict[str, dict[int, StoredRound]] = {}

    def add(self, stem: str, text: str) -> str:
        """Adds a new job and returns its name."""
        job = f"{stem}-{len(self._jobs) + 1}"
        self._jobs[job], self._rounds[job] = (text, time.time()), {}
        return job

    def load(self, job: str) -> StoredJob:
        """A job of this process. Raises KernelError for any other."""
        if job not in self._jobs:
            raise KernelError(
                f"job `{job}` is not stored", where="--no-store", hint="leave --no-store out"
            )
        rounds = self._rounds[job]
        # A run's settings name the round in which it began. The round gets the run's name only
        # then.
        begun = {self._store.load(run).settings.job: run for run in self._store.started()}
        found = (
            replace(r, run=r.run or begun.get(f"{job}/{n}", "")) for n, r in sorted(rounds.items())
        )
        return StoredJob(job, *self._jobs[job], tuple(found))

    resume = load

    def begin(self, job: str, begun: StoredRound) -> None:
        """Keeps a round before it begins."""
        self._rounds[job][begun.number] = begun

    def end(self, job: str, number: int, ended: str, over: bool) -> None:
        """Keeps the end of a round."""
        self._rounds[job][number] = replace(self._rounds[job][number], ended=ended, over=over)

    def let_go(self, job: str) -> None:
        """Does nothing, because no other process can work on the job."""
