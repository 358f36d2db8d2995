"""The models of a search: who is drawn, who answers, and what that has cost."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from search.core.stored import Keeper
from search.llm.breaker import Breaker, BreakerLimits
from search.llm.budgeted import Budgeted
from search.llm.endpoint import Endpoint
from search.llm.ensemble import Ensemble
from search.llm.exchange import Answer, ModelError, Reply, Request
from search.llm.ledger import Ledger
from search.llm.limited import EndpointLimits, Limited
from search.llm.patient import Patience, Patient
from search.llm.recording import Recording
from search.llm.remote import Remote
from search.llm.replay import Replay
from search.llm.time_left import TimeLeft

OUTAGE = BreakerLimits(in_a_row=3, first=15.0, span=10.0)


@dataclass(frozen=True, slots=True)
class Models:
    """A client (see `client.Client`) with all that belongs to it."""

    ensemble: Ensemble  # draws the model that a request names
    ledger: Ledger  # tokens and money so far
    recording: Recording
    breaking: Callable[[], None]  # breaks off what is in flight
    # Lets time pass until an endpoint may be asked again.
    waiting: Callable[[], None] = lambda: None
    time_left: TimeLeft = field(default_factory=TimeLeft)  # for answers

    def begin(self, run: str) -> None:
        """Exchanges from now on belong to this run; call it before the first."""
        self.recording.begin(run)

    def complete(self, request: Request) -> Answer:
        """The answer of the model that the request names; ModelError where there is none."""
        return self.recording.complete(request)

    def refuse(self, request: Request, reason: str) -> None:
        """Notes that the last answer to a request was not taken, and why."""
        self.recording.refuse(request, reason)

    def replies(self) -> tuple[Reply, ...]:
        """All that came back in this run, also in an earlier session."""
        return self.recording.replies()

    def wait(self) -> None:
        """Lets time pass until an endpoint that is left alone may be asked again."""
        self.waiting()

    def close(self) -> None:
        """Breaks off what is in flight, and lets go of connections."""
        self.breaking()


def asked(
    endpoint: Endpoint,
    ensemble: Ensemble,
    ledger: Ledger,
    keeper: Keeper,
    rng: random.Random,
    *,
    limits: EndpointLimits = EndpointLimits(),
    patience: Patience = Patience(),
    tolerance: BreakerLimits = OUTAGE,
    say: Callable[[str], None] = lambda text: None,
) -> Models:
    """Models at an endpoint. rng: for the waits between attempts.  say: is told of these.

    KernelError where the `openai` package is not installed, or the ledger's budget of money
    does not know a model's price.
    """
    ledger.require_prices(ensemble.models)
    time_left, closed = TimeLeft(), threading.Event()
    remote = Remote(endpoint, time_left=time_left)
    breaker = Breaker(remote, tolerance, rng=random.Random(rng.random()))

    def sleep(seconds: float) -> None:
        if closed.wait(time_left.of(seconds)):
            raise ModelError("closed", "it was broken off", where=endpoint.shown)
        time_left.of(seconds)

    def wait() -> None:
        if seconds := min(breaker.left, tolerance.rest):
            say(f"no model answers; they are asked again in {seconds:.0f} s")
            sleep(seconds)

    limited = Limited(breaker, limits, sleep=sleep)
    patient = Patient(Budgeted(limited, ledger), patience, rng, sleep=sleep, say=say)

    def close() -> None:
        closed.set()
        remote.close()

    recording = Recording(patient, keeper, ledger)
    return Models(ensemble, ledger, recording, close, wait, time_left)


def replayed(
    run: str, stored: Keeper, ensemble: Ensemble, ledger: Ledger, keeper: Keeper
) -> Models:
    """Models that answer as they did in a stored run.

    stored: keeps that run.  keeper: keeps the one that is made now.  ledger: counts what the
    stored run paid; it refuses nothing, as the run's own refusals are stored.
    """
    replay = Replay(run, stored.exchanges(run), ledger)
    return Models(ensemble, ledger, Recording(replay, keeper, ledger), lambda: None)
