"""The local evaluator: a pool of workers on this machine, each a process of its own."""

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

TRIES = 3  # of a candidate, where it is the machine that fails
PATIENCE = 5.0  # seconds for a worker to end by itself
POLL = 0.25  # seconds between looks at whether all is closed
_AHEAD = -1  # in the place of a position: no call has asked for the candidate yet

# A program of its own, not a fork: its environment is clean from the start, and threads of this
# process (a display's) are not in it.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    f"from {__package__}.worker import main; main(int(sys.argv[1]))"
)


class Process(Protocol):
    """A worker's process: a child of this one (`subprocess.Popen`), or what is used so."""

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Starts(Protocol):
    """Starts workers in another way than each by itself."""

    def start(self, benches: Sequence[Bench]) -> Worker:
        """A worker, which may not be ready yet."""

    def expect(self, benches: Sequence[Bench]) -> None:
        """Workers of these benches will probably be started next."""

    def failed(self) -> None:
        """A worker ended before it was ready."""


@dataclass(slots=True)
class Worker:
    """A worker process, with a folder of its own."""

    process: Process
    connection: Connection
    home: Path
    doing: int | None = None  # the position of the candidate that it has, None while it has none
    backend: str = ""  # of the last that it was given
    # Waits until there is a process; False where it ended before
    born: Callable[[], bool] = lambda: True


def _hang_up(workers: Sequence[Worker]) -> None:
    """Closes the connections of workers, which then kill what they run and end. All end at once, because a child that uses a
    device takes seconds to end."""
    for worker in workers:
        worker.connection.close()


def _wait_for(workers: Sequence[Worker]) -> None:
    """Waits until workers end after `_hang_up`. Kills those that take longer than PATIENCE, and gives up on one that the
    operating system has not ended PATIENCE seconds later."""
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
    """Whether a worker has ended by then."""
    try:
        worker.process.wait(timeout=max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _of_machine(outcome: Evaluated) -> bool:
    """Whether it is to be tried again, as it says nothing of the candidate."""
    return isinstance(outcome, Failure) and outcome.kind == MACHINE


class WorkerEnded(KernelError):
    """A worker that ended before it was ready."""


class LocalEvaluator:
    """Evaluates several candidates at a time; see `run.Evaluator`.

    benches: one for each backend, alike in all else; each worker serves them all.  workers: how many
    at a time, by default as many as cores; fewer where the chip's memory has no room for so many. What
    becomes of a candidate does not depend on it, as long as times are simulated or modelled.  starts: who
    starts workers; None: each is a program of its own.
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
        self._ahead: dict[str, Worker] = {}  # by the key of the candidate that each has begun
        self._fastest: dict[str, float] = {}  # by backend
        self._builds: dict[str, float] = {}  # by backend, seconds, see `Fastest`
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
        """Ends the workers and whatever they run; calls of `evaluate` in other threads end too."""
        self._closed = True  # at once: who waits for a worker to be ready has the lock
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
        """(position, outcome) of each as they come; those not done after `seconds` never do.

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
                # Before the caller stores what was found: no worker waits for that.
                self._hand_out(todo, busy)
                yield from found
        finally:
            self._drop(*busy)

    def _answered(self, busy: Sequence[Worker], end: float | None) -> list[Any] | None:
        """The connections of workers that have answered; none where another call has all workers
        and one may be free by now; None where time is over, or all is closed."""
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
        """Starts the workers that are lacking; what they say of themselves."""
        said: list[Mapping[str, Setup]] = []
        for tried in range(1, TRIES + 1):
            start = self._starts.start if self._starts else _start
            fresh = [start(self.benches) for _ in range(self.workers - len(self._pool))]
            self._pool += fresh
            try:
                for worker in fresh:
                    try:
                        said.append(_ready(worker, lambda: self._closed))
                    except WorkerEnded:  # something else may have ended it
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
            dropped = [w for w in workers if w in self._pool]  # none where all is closed
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
        """Gives what is to be done to workers that have nothing to do, which are then busy."""
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
        # Where it is gone, that will be seen when it is read from.
        with suppress(OSError):
            worker.connection.send_bytes(to_ask(asked, self._known(asked.backend)))

    def _known(self, backend: str) -> Fastest | None:
        us = self._fastest.get(backend)
        return None if us is None else Fastest(us, self._builds.get(backend, 0.0))

    def _note(self, backend: str, outcome: Evaluated) -> None:
        """Notes how long the build took of what is about as fast as the fastest."""
        if not isinstance(outcome, Evaluation):
            return
        if outcome.us <= TOO_SLOW * self._fastest.get(backend, outcome.us):
            before = self._builds.get(backend, 0.0)
            self._builds[backend] = max(before, outcome.seconds.get("build", 0.0))

    def _take_over(self, todo: deque[tuple[int, Candidate]], busy: list[Worker]) -> None:
        """What was begun for this call is its own; what else was begun is given up."""
        with self._changed:
            begun, self._ahead = self._ahead, {}
            for position, asked in [one for one in todo if one[1].key in begun]:
                worker = begun.pop(asked.key, None)
                if worker is not None:  # else the same candidate is asked for twice
                    todo.remove((position, asked))
                    worker.doing = position
                    busy.append(worker)
        self._drop(*begun.values())

    def _take(self, worker: Worker) -> tuple[int, Evaluated]:
        """What a worker found out; where it died, that is a fault of the machine."""
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
    """Seconds until then; None where there is no end."""
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
            start_new_session=True,  # Ctrl-C is for the search, which then ends its workers
        )
    connection = Connection(here.detach())
    with suppress(OSError):  # it has ended already, as will be seen when it is read from
        connection.send_bytes(pickle.dumps((benches, str(home))))
    return Worker(process, connection, home)


def module_path() -> list[str]:
    """Where modules are found; not this package's own folder, which is there when a file in it
    runs as a program, and in which `operator` would hide Python's."""
    own = Path(search.__file__).parent
    return [p or os.getcwd() for p in sys.path if Path(p).absolute() != own]


def _ready(worker: Worker, given_up: Callable[[], bool]) -> Mapping[str, Setup]:
    """What a worker says of itself by backend, once it is set up; KernelError where it cannot be, or nobody wants it
    any longer."""
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
    """Waits until a worker says something; EOFError where it is given up before."""
    while not worker.connection.poll(POLL):
        if given_up():
            raise EOFError
