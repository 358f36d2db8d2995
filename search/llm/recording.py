"""A recording: stores each exchange before it is used, and returns stored ones in a resumed run."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ir.digest import text_digest
from search.core.model_use import Meter, Spent
from search.core.stored import Keeper, StoredExchange
from search.llm.client import Client
from search.llm.exchange import (
    Answer,
    ModelError,
    Reply,
    Request,
    after,
    is_step,
    refusal_of,
    reply_json,
    reply_of,
    request_of,
    step_json,
)
from search.llm.ledger import Ledger
from search.llm.replay import Replay


class Recording:
    """A client that stores its exchanges; see `client.Client`.

    A request is identified by its digest and its rank among equal requests. The rank is not defined
    for concurrent equal requests, so each needs its own seed. A resumed run gets its stored
    answers, and asks again where it had errors.
    """

    def __init__(
        self,
        client: Client,
        keeper: Keeper,
        ledger: Ledger,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._client = client
        self._keeper = keeper
        self._ledger = ledger
        self._clock = clock
        self._lock = threading.Lock()
        self._metering = threading.local()
        self._run = ""
        self._asked: Counter[str] = Counter()
        self._known: dict[tuple[str, int], Reply] = {}
        self._kept: dict[tuple[str, int], StoredExchange] = {}
        self._steps: dict[tuple[str, int], str] = {}

    def begin(self, run: str) -> None:
        """Assigns later exchanges to a run. The ledger counts the run's earlier ones."""
        with self._lock:
            self._run = run
            self._asked.clear()
            self._known.clear()
            self._kept.clear()
            self._steps.clear()
            for stored in self._keeper.exchanges(run):
                if is_step(stored.request):
                    self._steps[stored.digest, stored.rank] = stored.reply
                    continue
                reply = reply_of(stored.reply)
                self._known[stored.digest, stored.rank] = reply
                self._kept[stored.digest, stored.rank] = stored
                self._ledger.add(request_of(stored.request).model, reply)

    def complete(self, request: Request) -> Answer:
        """The client's answer, or the stored one."""
        assert self._run, "exchanges belong to a run: call begin first"
        digest = request.digest
        with self._lock:
            rank = self._asked[digest]
            self._asked[digest] += 1
            earlier = self._known.get((digest, rank))
        if isinstance(earlier, Answer):
            self._count(earlier)
            return earlier
        return self._exchange(request, digest, rank, earlier)

    @contextmanager
    def metered(self) -> Iterator[Meter]:
        """Measures the cost of this thread's exchanges, as stored."""
        self._metering.meter = meter = Meter()
        try:
            yield meter
        finally:
            self._metering.meter = None

    def _count(self, reply: Reply) -> None:
        """Adds a reply to the meter. Time counts for answers only: it is stored, so it is the same
        in a replay."""
        meter: Meter | None = getattr(self._metering, "meter", None)
        if meter is not None:
            tokens = reply.tokens_in + reply.tokens_out
            seconds = reply.seconds if isinstance(reply, Answer) else 0.0
            meter.spent = meter.spent.plus(Spent(tokens, reply.cost, seconds))

    def refuse(self, request: Request, reason: str) -> None:
        """Records and stores that the last answer to a request was rejected, and why."""
        digest = request.digest
        with self._lock:
            place = digest, self._asked[digest] - 1
            kept = self._kept[place]
            refused = replace(kept, reply=reply_json(reply_of(kept.reply), reason))
            self._kept[place] = refused
            if refused != kept:
                self._keeper.exchanged(self._run, refused)

    def stepped(self, request: Request, said: str, work: Callable[[], str]) -> str:
        """The result of a model's step within an exchange: the stored one, or that of `work`, which
        is stored.

        said: the step. request: the request that the model answered with it.
        """
        digest = text_digest(f"{request.digest} {said}")
        with self._lock:
            rank = self._asked[digest]
            self._asked[digest] += 1
            known = self._steps.get((digest, rank))
        if known is not None:
            return str(json.loads(known)["result"])
        since = self._clock()
        replayed = self._client if isinstance(self._client, Replay) else None
        result = work() if replayed is None else replayed.step(digest, rank)
        kept = json.dumps({"result": result})
        seconds = self._clock() - since
        exchange = StoredExchange(digest, rank, step_json(said), kept, seconds)
        self._keeper.exchanged(self._run, exchange)
        return result

    def steps(self) -> int:
        """The number of steps in the run's exchanges."""
        return sum(is_step(stored.request) for stored in self._keeper.exchanges(self._run))

    def refused(self) -> int:
        """The number of rejected answers of the run."""
        with self._lock:
            return sum(bool(refusal_of(kept.reply)) for kept in self._kept.values())

    def replies(self) -> tuple[Reply, ...]:
        """All replies of the run, in the order in which they ended."""
        stored = (e for e in self._keeper.exchanges(self._run) if not is_step(e.request))
        return tuple(reply_of(exchange.reply) for exchange in stored)

    def _exchange(
        self, request: Request, digest: str, rank: int, earlier: ModelError | None
    ) -> Answer:
        since = self._clock()
        reply: Reply
        try:
            reply = self._client.complete(request)
        except ModelError as error:
            reply = error
        if not (isinstance(reply, ModelError) and reply.kind == "closed"):
            whole = after(reply, [earlier] if earlier else [])
            seconds = self._clock() - since
            self._count(whole)
            exchange = StoredExchange(digest, rank, request.to_json(), reply_json(whole), seconds)
            self._keeper.exchanged(self._run, exchange)
            with self._lock:
                self._kept[digest, rank] = exchange
        if isinstance(reply, ModelError):
            raise reply
        return reply
