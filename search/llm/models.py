"""The models of a search: the choice of a model, the requests, and their cost."""

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
    """A client (see `client.Client`) with its ledger and its recording."""

    ensemble: Ensemble  # draws the model of a request
    ledger: Ledger  # tokens and cost so far
    recording: Recording
    breaking: Callable[[], None]  # cancels requests in flight
    # Waits until an endpoint may be asked again.
    waiting: Callable[[], None] = lambda: None
    time_left: TimeLeft = field(default_factory=TimeLeft)  # for answers

    def begin(self, run: str) -> None:
        """Assigns later exchanges to this run. Call it before the first request."""
        self.recording.begin(run)

    def complete(self, request: Request) -> Answer:
        """The answer of the request's model. Raises ModelError if there is none."""
        return self.recording.complete(request)

    def refuse(self, request: Request, reason: str) -> None:
        """Records that the last answer to a request was rejected, and why."""
        self.recording.refuse(request, reason)

    def replies(self) -> tuple[Reply, ...]:
        """All replies of this run, including earlier sessions."""
        return self.recording.replies()

    def wait(self) -> None:
        """Waits until a paused endpoint may be asked again."""
        self.waiting()

    def close(self) -> None:
        """Cancels requests in flight, and closes connections."""
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
    """Models at an endpoint.

    rng: for the waits between attempts. say: called with a line about each wait. Raises KernelError
    if the `openai` package is not installed, or if there is a budget of money and a model's price
    is unknown.
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
    """Models that answer as in a stored run.

    stored: the store of that run. keeper: the store of the new run. ledger: counts the stored run's
    cost; it refuses nothing, because the run's refusals are stored.
    """
    replay = Replay(run, stored.exchanges(run), ledger)
    return Models(ensemble, ledger, Recording(replay, keeper, ledger), lambda: None)
