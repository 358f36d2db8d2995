"""A keeper that forgets: runs are held in memory, and gone with the process."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange, StoredRun


class Forgetful:
    """Names runs and remembers outcomes; see `stored.Keeper`. Nothing can go on later."""

    url = ""
    leases = None

    def __init__(self) -> None:
        self._runs: Counter[str] = Counter()
        self._secret = secrets.token_hex(16)
        self._started: dict[str, float] = {}
        self._outcomes: dict[tuple[str, str], Evaluated] = {}
        self._exchanges: dict[str, dict[tuple[str, int], StoredExchange]] = {}

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """A new run; its name."""
        stem = f"{chosen.kernel}-{chosen.target}"
        self._runs[stem] += 1
        run = f"{stem}-{self._runs[stem]}"
        self._started = {run: time.time(), **self._started}
        return run

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """Nothing of it is kept."""

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """Keeps what became of a candidate, for as long as the process lives."""
        self._outcomes[key, context] = outcome

    def log(self, run: str, event: StoredEvent) -> None:
        """Nothing of it is kept."""

    def cached(self, key: str, context: str) -> Evaluated | None:
        """What became of a candidate in the same context; the latest."""
        return self._outcomes.get((key, context))

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Keeps an exchange, for as long as the process lives."""
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
        """None is kept."""
        return ()

    def started(self) -> dict[str, float]:
        """When each run of this process was started, by its name; the latest first."""
        return dict(self._started)

    def load(self, run: str) -> StoredRun:
        """KernelError: no run can go on."""
        raise KernelError(
            f"run `{run}` is not kept", where="--no-store", hint="leave --no-store out"
        )

    resume = load

    def close(self) -> None:
        """There is nothing to let go of."""
