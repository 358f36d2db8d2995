"""Jobs: requests to models and evaluations, which run beside the search and end in any order."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

PATIENCE = 10.0  # seconds for what is in flight to end once it was broken off


@dataclass(frozen=True, slots=True)
class Done:
    """A job that has ended."""

    name: str
    found: Any = None  # what it gave
    error: BaseException | None = None  # what it raised instead

    def result(self) -> Any:
        """What it gave; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.found


class Jobs(Protocol):
    """Runs jobs; one thread starts them and takes what they give."""

    def request(self, name: str, work: Callable[[], Any]) -> None:
        """Starts a request to a model."""

    def evaluation(self, name: str, work: Callable[[], Any]) -> None:
        """Starts an evaluation, as soon as a worker is free for it."""

    def next(self) -> Done:
        """The next job that ends, of those that were started: there must be one."""

    def end(self) -> None:
        """Gives up what has not begun, and waits for requests, which were broken off."""


class Threads:
    """Jobs in threads. requests, workers: how many run at once of each sort."""

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
        """Starts an evaluation, as soon as a worker is free for it."""
        self._evaluations.submit(self._run, name, work)

    def next(self) -> Done:
        """The next job that ends."""
        return self._done.get()

    def end(self) -> None:
        """Gives up what has not begun, and waits for requests, which were broken off."""
        for pool in (self._requests, self._evaluations):
            pool.shutdown(wait=False, cancel_futures=True)
        wait(self._asked, PATIENCE)

    def _run(self, name: str, work: Callable[[], Any]) -> None:
        try:
            done = Done(name, work())
        except BaseException as error:  # it is raised where the job's result is taken
            done = Done(name, error=error)
        self._done.put(done)
