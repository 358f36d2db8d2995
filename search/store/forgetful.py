"""A keeper that forgets: runs and jobs are held in memory, and gone with the process."""

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
    """Keeps runs for as long as the process lives; see `stored.Keeper`. Nothing can go on later."""

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
        """A new run; its name."""
        stem = f"{chosen.kernel}-{chosen.target}"
        self._counts[stem] += 1
        run = f"{stem}-{self._counts[stem]}"
        self._runs[run] = _Run(chosen, dict(environment))
        self._started = {run: time.time(), **self._started}
        return run

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """Keeps a generation in place of an earlier one of its number."""
        self._runs[run].generations[generation] = tuple(candidates)

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """Keeps what became of a candidate."""
        self._outcomes[key, context] = outcome
        self._runs[run].outcomes[key] = outcome

    def log(self, run: str, event: StoredEvent) -> None:
        """Keeps a line of a run's log."""
        self._runs[run].events.append(event)

    def cached(self, key: str, context: str) -> Evaluated | None:
        """What became of a candidate in the same context; the latest."""
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
        """None is kept."""
        return {}

    def learned(self, name: str, text: str) -> None:
        """Nothing of it is kept."""

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The runs of a kernel, the latest first."""
        return tuple(r for r in self._started if self._runs[r].settings.kernel == kernel)

    def runs_alike(self, kernel: str) -> tuple[str, ...]:
        """The runs of other kernels of networks that store the same, the latest first."""
        stem, names = stem_of(kernel), {r: self._runs[r].settings.kernel for r in self._started}
        return tuple(r for r, n in names.items() if stem and n != kernel and stem_of(n) == stem)

    def started(self) -> dict[str, float]:
        """When each run of this process was started, by its name; the latest first."""
        return dict(self._started)

    def load(self, run: str) -> StoredRun:
        """A run of this process; KernelError for another."""
        if run not in self._runs:
            raise KernelError(
                f"run `{run}` is not kept", where="--no-store", hint="leave --no-store out"
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
        """There is nothing to let go of."""


class ForgetfulJobs:
    """Keeps jobs for as long as the process lives; see `stored_job.JobKeeper`."""

    def __init__(self, store: Forgetful) -> None:
        self._store = store
        self._jobs: dict[str, tuple[str, float]] = {}
        self._rounds: dict[str, dict[int, StoredRound]] = {}

    def add(self, stem: str, text: str) -> str:
        """A new job; its name."""
        job = f"{stem}-{len(self._jobs) + 1}"
        self._jobs[job], self._rounds[job] = (text, time.time()), {}
        return job

    def load(self, job: str) -> StoredJob:
        """A job of this process; KernelError for another."""
        if job not in self._jobs:
            raise KernelError(
                f"job `{job}` is not kept", where="--no-store", hint="leave --no-store out"
            )
        rounds = self._rounds[job]
        # A run says of which round it was begun, which only then has its name.
        begun = {self._store.load(run).settings.job: run for run in self._store.started()}
        found = (
            replace(r, run=r.run or begun.get(f"{job}/{n}", "")) for n, r in sorted(rounds.items())
        )
        return StoredJob(job, *self._jobs[job], tuple(found))

    resume = load

    def begin(self, job: str, begun: StoredRound) -> None:
        """A round is about to begin."""
        self._rounds[job][begun.number] = begun

    def end(self, job: str, number: int, ended: str, over: bool) -> None:
        """A round has ended."""
        self._rounds[job][number] = replace(self._rounds[job][number], ended=ended, over=over)

    def let_go(self, job: str) -> None:
        """There is nothing to let go of."""
