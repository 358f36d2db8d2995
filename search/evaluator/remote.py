"""The remote evaluator: slots on the nodes of a cluster evaluate the candidates."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.evaluator.cluster import Cluster
from search.evaluator.slots import POLL, Call, Loss, Slots, tasks
from search.evaluator.stages import Bench


class RemoteEvaluator:
    """Evaluates on a cluster; see `hooks.Evaluator`. Outcomes are those of a `LocalEvaluator` on
    the node.

    resources: of one slot. workers: the largest number of slots; None: as many as fit. say: shows a
    line to a person.
    """

    def __init__(
        self,
        benches: Sequence[Bench],
        cluster: Cluster,
        resources: Mapping[str, float],
        workers: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ):
        # Called for each candidate whose slot was lost, with the cause, in the thread that asked
        # for it.
        self.lost: Callable[[Candidate, str], None] = lambda candidate, how: None
        self._say = say
        benches = tuple(benches)
        self._slots = Slots(cluster, cluster.kept(pickle.dumps(benches)), resources, workers)
        self._calls: list[Call] = []
        self._lock = threading.Lock()
        self._over: BaseException | None = None  # the exception that ended the thread
        self._closed = False
        self._opened: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="slots", daemon=True)
        self._thread.start()
        try:
            if error := self._opened.get():
                raise error
        except BaseException:
            self.close()
            raise
        first = self._slots.first
        assert first is not None, "a slot is ready"
        self.workers = self._slots.fits()
        self.contexts: Mapping[str, str] = first.contexts
        self.environment: Mapping[str, Any] = {
            **first.environment,
            "workers": self.workers,
            "cluster": {"address": cluster.address, "nodes": self._slots.nodes},
        }

    def __enter__(self) -> RemoteEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the slots and their work. Calls of `evaluate` in other threads end too."""
        self._closed = True
        self._slots.inbox.put(lambda: None)
        self._thread.join()

    def ahead(self, asked: Candidate) -> None:
        """See `hooks.Foresighted`."""
        self._slots.inbox.put(partial(self._slots.begin, asked))

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields (position, outcome) for each candidate as it ends; those not done after `seconds`
        are left out.

        Calls from several threads share the slots.
        """
        end = None if seconds is None else time.monotonic() + seconds
        call: Call = queue.SimpleQueue()
        with self._lock:
            self._calls.append(call)
            if self._closed or self._over:
                call.put(self._over)
        self._slots.inbox.put(partial(self._slots.add, tasks(call, candidates)))
        missing = len(candidates)
        try:
            while missing:
                try:
                    answer = call.get(
                        timeout=None if end is None else max(0.0, end - time.monotonic())
                    )
                except queue.Empty:
                    return
                self._tell_news()
                if isinstance(answer, Loss):
                    self.lost(answer.candidate, answer.how)
                elif isinstance(answer, BaseException):
                    raise answer
                elif answer is None:
                    return
                else:
                    missing -= 1
                    yield answer
        finally:
            with self._lock:
                self._calls.remove(call)
            self._slots.inbox.put(partial(self._slots.forget, call))

    def _tell_news(self) -> None:
        while not self._slots.news.empty():
            self._say(self._slots.news.get())

    def _serve(self) -> None:
        """The thread that owns the slots."""
        told = False
        try:
            while not self._closed:
                self._slots.turn(POLL)
                if self._slots.first and not told:
                    told = True
                    self._opened.put(None)
        except BaseException as error:  # raised again in the waiting thread
            self._over = error
        finally:
            self._slots.end()
            self._opened.put(self._over)
            with self._lock:
                self._closed = True
                for call in self._calls:
                    call.put(self._over)
