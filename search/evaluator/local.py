"""The local evaluator: a pool of worker processes on this machine."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import search
from ir.errors import KernelError
from ir.parse.parse import parse_spec
from search.core.candidate import Candidate
from search.core.evaluation import MACHINE, Evaluated, Evaluation, Failure, from_json
from search.evaluator.glance import TOO_SLOW, Fastest, to_ask
from search.evaluator.sandbox import environment
from search.evaluator.shapes import most_at_once
from search.evaluator.stages import Bench, Setup
from search.evaluator.toolchain import bench_digest

TRIES = 3  # attempts for a candidate if the machine fails
PATIENCE = 5.0  # seconds that a worker has to end by itself
POLL = 0.25  # seconds between checks whether the evaluator is closed
_AHEAD = -1  # in place of a position: no call has asked for the candidate yet

# A separate program and not a fork, so that its environment is clean and it has none of this
# process's threads (of a display).
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__package__}.worker import main; main(int(sys.argv[1]))"
)


class Process(Protocol):
    """A worker's process: a child of this one (`subprocess.Popen`) or an equivalent."""

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Starts(Protocol):
    """Another way to start workers."""

    def start(self, benches: Sequence[Bench]) -> Worker:
        """A worker, which may not be ready yet."""

    def expect(self, benches: Sequence[Bench]) -> None:
        """Announces that workers of these benches will probably be started next."""

    def failed(self) -> None:
        """Reports that a worker ended before it was ready."""


@dataclass(slots=True)
class Worker:
    """A worker process with its own folder."""

    process: Process
    connection: Connection
    home: Path
    doing: int | None = None  # position of its current candidate; None if it is idle
    backend: str = ""  # backend of its last candidate
    # Waits until the process exists; returns False if it ended before.
    born: Callable[[], bool] = lambda: True


def _hang_up(workers: Sequence[Worker]) -> None:
    """Closes the connections of workers, which then kill their children and end. All end at the
    same time, because a child that uses a device takes seconds to end."""
    for worker in workers:
        worker.connection.close()


def _wait_for(workers: Sequence[Worker]) -> None:
    """Waits until workers have ended after `_hang_up`. Kills those that take longer than PATIENCE,
    and gives up on one that the operating system has not ended PATIENCE seconds later."""
    end = time.monotonic() + PATIENCE
    late = [w for w in workers if not _ended(w, end)]
    for worker in late:
        worker.process.kill()
    end = time.monotonic() + PATIENCE
    for worker in late:
        _ended(worker, end)
    for worker in workers:
        shutil.rmtree(worker.home, ignore_errors=True)


def _ended(worker: Worker, end: float) -> bool:
    """Whether a worker ends before `end`."""
    try:
        worker.process.wait(timeout=max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _of_machine(outcome: Evaluated) -> bool:
    """Whether a candidate must be tried again because the outcome says nothing about it."""
    return isinstance(outcome, Failure) and outcome.kind == MACHINE


class WorkerEnded(KernelError):
    """A worker ended before it was ready."""


class LocalEvaluator:
    """Evaluates several candidates concurrently; see `hooks.Evaluator`.

    - benches: one for each backend, equal in everything else. Each worker serves them all.
    - workers: number of concurrent candidates. The default is the number of cores, or fewer if the
      device's memory is too small. Outcomes do not depend on it if times are simulated or modelled.
    - starts: starts the workers; None: each is a separate program.
    """

    def __init__(
        self, benches: Sequence[Bench], workers: int | None = None, starts: Starts | None = None
    ):
        self.benches = tuple(benches)
        self._starts = starts
        self.workers = min(workers or os.cpu_count() or 1, *map(_most_at_once, self.benches))
        self._pool: list[Worker] = []
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        self._ahead: dict[str, Worker] = {}  # by key of the candidate that each has begun
        self._fastest: dict[str, float] = {}  # microseconds by backend
        self._builds: dict[str, float] = {}  # seconds by backend, see `Fastest`
        self._polling = 0  # calls that wait for workers, whose connections must stay open
        self._dropping = 0  # calls that wait for workers to end
        setups = self._fill()[0]
        self.contexts: Mapping[str, str] = {
            name: bench_digest(bench, setup.here)
            for bench, (name, setup) in zip(self.benches, setups.items(), strict=True)
        }
        self.environment: Mapping[str, Any] = {
            "contexts": self.contexts,
            "workers": self.workers,
            "backends": {name: dict(setup.here) for name, setup in setups.items()},
            "sandbox": dict(next(iter(setups.values())).sandbox),
            "limits": {
                name: {n: getattr(setup.limits, n) for n in ("seconds", "memory", "file")}
                for name, setup in setups.items()
            },
        }

    @property
    def measures(self) -> bool:
        """Whether times are measured."""
        said = self.environment["backends"].values()
        return any(each.get("time_kind") == "measured" for each in said)

    def __enter__(self) -> LocalEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the workers and their children. Calls of `evaluate` in other threads end too."""
        # set before the lock: a thread that waits for a worker to be ready holds it
        self._closed = True
        with self._changed:
            self._changed.notify_all()
            while self._polling:
                self._changed.wait()
            pool, self._pool = self._pool, []
            _hang_up(pool)
        _wait_for(pool)
        with self._changed:
            self._changed.wait_for(lambda: not self._dropping, 2 * PATIENCE)

    def fastest(self, backend: str, us: float) -> None:
        """See `hooks.Hurried`."""
        self._fastest[backend] = us

    def ahead(self, asked: Candidate) -> None:
        """See `hooks.Foresighted`."""
        with self._changed:
            if self._closed or asked.key in self._ahead:
                return
            self._fill()
            worker = next((w for w in self._pool if w.doing is None), None)
            if worker is not None and not self._closed:
                self._ahead[asked.key] = worker
                self._give(worker, _AHEAD, asked)

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields (position, outcome) for each candidate as it ends; those not done after `seconds`
        are left out.

        Calls from several threads share the workers.
        """
        end = None if seconds is None else time.monotonic() + seconds
        todo = deque(enumerate(candidates))
        tried: Counter[int] = Counter()
        busy: list[Worker] = []
        try:
            self._take_over(todo, busy)
            self._hand_out(todo, busy)
            while todo or busy:
                ready = self._answered(busy, end)
                if ready is None:
                    return
                found: list[tuple[int, Evaluated]] = []
                for worker in [w for w in busy if w.connection in ready]:
                    position, outcome = self._take(worker)
                    busy.remove(worker)
                    tried[position] += 1
                    if _of_machine(outcome) and tried[position] < TRIES:
                        todo.append((position, candidates[position]))
                    else:
                        found.append((position, outcome))
                # Before the caller stores the outcomes, so that no worker waits for that.
                self._hand_out(todo, busy)
                yield from found
        finally:
            self._drop(*busy)

    def _answered(self, busy: Sequence[Worker], end: float | None) -> list[Any] | None:
        """The connections of workers that have answered.

        Empty if another call has all workers and one may be free now. None if time is over or the
        evaluator is closed.
        """
        if not busy:
            with self._changed:
                left = _left(end)
                if left == 0.0 or self._closed:
                    return None
                self._changed.wait(POLL if left is None else min(POLL, left))
            return []
        while True:
            with self._changed:
                if self._closed:
                    return None
                self._polling += 1
            left = _left(end)
            try:
                found = wait(
                    [w.connection for w in busy], POLL if left is None else min(POLL, left)
                )
            finally:
                with self._changed:
                    self._polling -= 1
                    self._changed.notify_all()
            if found or left == 0.0:
                return found or None

    def _fill(self) -> list[Mapping[str, Setup]]:
        """Starts missing workers. Returns their setups."""
        said: list[Mapping[str, Setup]] = []
        for tried in range(1, TRIES + 1):
            start = self._starts.start if self._starts else _start
            fresh = [start(self.benches) for _ in range(self.workers - len(self._pool))]
            self._pool += fresh
            try:
                for worker in fresh:
                    try:
                        said.append(_ready(worker, lambda: self._closed))
                    except WorkerEnded:  # may have another cause; tried again
                        if self._closed:
                            return said
                        if self._starts:
                            self._starts.failed()
                        if tried == TRIES:
                            raise
                        self._drop(worker)
            except BaseException:
                self.close()
                raise
        return said

    def _drop(self, *workers: Worker) -> None:
        """Ends workers. Other threads do not wait for it, unless the caller holds the lock."""
        with self._changed:
            dropped = [w for w in workers if w in self._pool]  # none if the evaluator is closed
            self._pool = [w for w in self._pool if w not in dropped]
            _hang_up(dropped)
            self._dropping += 1
            self._changed.notify_all()
        try:
            _wait_for(dropped)
        finally:
            with self._changed:
                self._dropping -= 1
                self._changed.notify_all()

    def _hand_out(self, todo: deque[tuple[int, Candidate]], busy: list[Worker]) -> None:
        """Gives candidates to idle workers, which become busy."""
        with self._changed:
            if not todo or self._closed:
                return
            self._fill()
            for worker in [w for w in self._pool if w.doing is None]:
                if not todo or self._closed:
                    return
                position, asked = todo.popleft()
                busy.append(worker)
                self._give(worker, position, asked)

    def _give(self, worker: Worker, position: int, asked: Candidate) -> None:
        worker.doing, worker.backend = position, asked.backend
        # If the worker is gone, the next read from it shows that.
        with suppress(OSError):
            worker.connection.send_bytes(to_ask(asked, self._known(asked.backend)))

    def _known(self, backend: str) -> Fastest | None:
        us = self._fastest.get(backend)
        return None if us is None else Fastest(us, self._builds.get(backend, 0.0))

    def _note(self, backend: str, outcome: Evaluated) -> None:
        """Records the build time of candidates that are about as fast as the fastest."""
        if not isinstance(outcome, Evaluation):
            return
        if outcome.us <= TOO_SLOW * self._fastest.get(backend, outcome.us):
            before = self._builds.get(backend, 0.0)
            self._builds[backend] = max(before, outcome.seconds.get("build", 0.0))

    def _take_over(self, todo: deque[tuple[int, Candidate]], busy: list[Worker]) -> None:
        """Takes over candidates that were begun for this call, and cancels the others."""
        with self._changed:
            begun, self._ahead = self._ahead, {}
            for position, asked in [one for one in todo if one[1].key in begun]:
                worker = begun.pop(asked.key, None)
                if worker is not None:  # None if the call asks for the same candidate twice
                    todo.remove((position, asked))
                    worker.doing = position
                    busy.append(worker)
        self._drop(*begun.values())

    def _take(self, worker: Worker) -> tuple[int, Evaluated]:
        """The outcome from a worker; a machine fault if the worker died."""
        position = worker.doing
        assert position is not None, "a worker without a candidate has answered"
        try:
            outcome: Evaluated = from_json(worker.connection.recv_bytes().decode())
            self._note(worker.backend, outcome)
            with self._changed:
                worker.doing = None
                self._changed.notify_all()
        except (EOFError, OSError):
            outcome = Failure("verify", MACHINE, "the worker that had it died")
            self._drop(worker)
        return position, outcome


def _most_at_once(bench: Bench) -> int:
    return most_at_once(parse_spec(bench.spec), bench.machine, bench.shapes)


def _left(end: float | None) -> float | None:
    """Seconds until `end`; None if there is no end."""
    return None if end is None else max(0.0, end - time.monotonic())


def _start(benches: Sequence[Bench]) -> Worker:
    home = Path(tempfile.mkdtemp(prefix="speciate-"))
    here, there = socket.socketpair()
    with there:
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(there.fileno()), *module_path()],
            cwd=home,
            env=environment(os.environ),
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches only the search, which then ends its workers
        )
    connection = Connection(here.detach())
    with suppress(OSError):  # if it has ended already, the next read shows that
        connection.send_bytes(pickle.dumps((benches, str(home))))
    return Worker(process, connection, home)


def module_path() -> list[str]:
    """The search path of modules, without this package's own folder. That folder is on the path if
    a file in it runs as a program, and its `operator` would hide Python's."""
    own = Path(search.__file__).parent
    return [p or os.getcwd() for p in sys.path if Path(p).absolute() != own]


def _ready(worker: Worker, given_up: Callable[[], bool]) -> Mapping[str, Setup]:
    """The setups of a worker by backend, once it is ready. Raises KernelError if the worker cannot
    be set up or is no longer wanted."""
    try:
        _await(worker, given_up)
        if not worker.born():
            raise EOFError
        _await(worker, given_up)
        said = pickle.loads(worker.connection.recv_bytes())
    except (EOFError, OSError) as error:
        raise WorkerEnded(
            "an evaluation worker ended before it was ready",
            hint="its own message is above, on stderr",
        ) from error
    if isinstance(said, KernelError):
        raise said
    return said


def _await(worker: Worker, given_up: Callable[[], bool]) -> None:
    """Waits until a worker sends something. Raises EOFError if it is given up before."""
    while not worker.connection.poll(POLL):
        if given_up():
            raise EOFError
