"""The models of a search: who is drawn, who answers, and what that has cost."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from search.llm.breaker import Breaker
from search.llm.budgeted import Budgeted
from search.llm.endpoint import Endpoint
from search.llm.ensemble import Ensemble
from search.llm.exchange import Answer, ModelError, Reply, Request
from search.llm.ledger import Ledger
from search.llm.limited import Limited, Limits
from search.llm.patient import Patience, Patient
from search.llm.recording import Recording
from search.llm.remote import Remote
from search.llm.replay import Replay
from search.stored import Keeper


@dataclass(frozen=True, slots=True)
class Models:
    """A client (see `client.Client`) with all that belongs to it.

    ensemble: draws the model that a request names.  ledger: tokens and money so far.
    """

    ensemble: Ensemble
    ledger: Ledger
    recording: Recording
    breaking: Callable[[], None]

    def begin(self, run: str) -> None:
        """Exchanges from now on belong to this run; call it before the first."""
        self.recording.begin(run)

    def complete(self, request: Request) -> Answer:
        """The answer of the model that the request names; ModelError where there is none."""
        return self.recording.complete(request)

    def replies(self) -> tuple[Reply, ...]:
        """All that came back in this run, also in an earlier session."""
        return self.recording.replies()

    def close(self) -> None:
        """Breaks off what is under way, and lets go of connections."""
        self.breaking()


def asked(
    endpoint: Endpoint,
    ensemble: Ensemble,
    ledger: Ledger,
    keeper: Keeper,
    rng: random.Random,
    *,
    limits: Limits = Limits(),
    patience: Patience = Patience(),
    say: Callable[[str], None] = lambda text: None,
) -> Models:
    """Models at an endpoint. rng: for the waits between attempts.  say: is told of these.

    KernelError where the `openai` package is not installed, or the ledger's budget of money
    does not know a model's price.
    """
    ledger.require_prices(ensemble.models)
    remote = Remote(endpoint)
    closed = threading.Event()

    def sleep(seconds: float) -> None:
        if closed.wait(seconds):
            raise ModelError("closed", "it was broken off", where=endpoint.shown)

    limited = Limited(remote, limits, sleep=sleep)
    patient = Patient(Budgeted(limited, ledger), patience, rng, sleep=sleep, say=say)

    def close() -> None:
        closed.set()
        remote.close()

    return Models(ensemble, ledger, Recording(Breaker(patient), keeper, ledger), close)


def replayed(
    run: str, stored: Keeper, ensemble: Ensemble, ledger: Ledger, keeper: Keeper
) -> Models:
    """Models that answer as they did in a stored run.

    stored: keeps that run.  keeper: keeps the one that is made now.  ledger: counts what the
    stored run paid; it refuses nothing, as the run's own refusals are stored.
    """
    replay = Replay(run, stored.exchanges(run), ledger)
    return Models(ensemble, ledger, Recording(replay, keeper, ledger), lambda: None)
