"""Jobs: requests to models and evaluations, which run concurrently and end in any order."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

PATIENCE = 10.0  # seconds that cancelled requests have to end


@dataclass(frozen=True, slots=True)
class Done:
    """A job that has ended."""

    name: str
    found: Any = None  # its result
    error: BaseException | None = None  # the exception that it raised instead

    def result(self) -> Any:
        """The result of the job; raises its exception."""
        if self.error is not None:
            raise self.error
        return self.found


class Jobs(Protocol):
    """Runs jobs. One thread starts them and takes their results."""

    def request(self, name: str, work: Callable[[], Any]) -> None:
        """Starts a request to a model."""

    def evaluation(self, name: str, work: Callable[[], Any]) -> None:
        """Starts an evaluation as soon as a worker is free."""

    def next(self) -> Done:
        """Waits for the next job to end. At least one must be in progress."""

    def end(self) -> None:
        """Cancels jobs that have not begun, and waits for the cancelled requests."""


class Threads:
    """Runs jobs in threads. requests, workers: how many of each kind run at once."""

    def __init__(self, requests: int, workers: int):
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._requests = ThreadPoolExecutor(requests, "request")
        self._evaluations = ThreadPoolExecutor(workers, "evaluation")
        self._asked: list[Future[None]] = []

    def request(self, name: str, work: Callable[[], Any]) -> None:
        """Starts a request to a model."""
        self._asked = [f for f in self._asked if not f.done()]
        self._asked.append(self._requests.submit(self._run, name, work))

    def evaluation(self, name: str, work: Callable[[], Any]) -> None:
        """Starts an evaluation as soon as a worker is free."""
        self._evaluations.submit(self._run, name, work)

    def next(self) -> Done:
        """Waits for the next job to end."""
        return self._done.get()

    def end(self) -> None:
        """Cancels jobs that have not begun, and waits for the cancelled requests."""
        for pool in (self._requests, self._evaluations):
            pool.shutdown(wait=False, cancel_futures=True)
        wait(self._asked, PATIENCE)

    def _run(self, name: str, work: Callable[[], Any]) -> None:
        try:
            done = Done(name, work())
        except BaseException as error:  # raised again where the result is taken
            done = Done(name, error=error)
        self._done.put(done)
