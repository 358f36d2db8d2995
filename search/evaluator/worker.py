"""A worker: a warm process that forks a sandboxed child for each candidate, and outlives it.

Opening a device takes longer than most candidates do. So a child goes on with further candidates where
its backend says that it may (`lasting`), as long as they are of our own emitters: a source that
somebody else wrote has a child of its own, and so has whatever comes after a failure of another kind
than that a toolchain refused it.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path

from backends.backend import Opens
from backends.busy import in_line, starved
from backends.gpu.apart import join
from backends.turns import WAITING, spent
from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Failure, from_json, to_json
from search.evaluator import sandbox
from search.evaluator.clean import Template
from search.evaluator.forks import OUTPUT, detach
from search.evaluator.glance import Fastest, asked_of, to_ask
from search.evaluator.groups import Group, sweep
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench, Stages

MOSTOUTPUT = 1 << 20  # bytes that a child may send: a thousand times what it needs
CPU_SHARE = 0.5  # of its processor time, after which a child takes no further candidate
OPENING = 60.0  # seconds that a child may take to open a device before it has a candidate
GRACE = 1.0  # seconds between the end of a child's output and its own
# Keys of seconds beside the stages: of a build at further sizes, of waiting within a check, and until a process was
# ready that was made for the candidate, with the device open.
TO_CHECK, WAITED, START = "build to check", "waiting to check", "start"
TAIL = 400  # characters of a dead child's last words
_SET_SUBREAPER = 36


class Gone(Exception):
    """Whoever wanted the result is no longer there."""


def main(socket: int) -> None:
    """Serves the process at the other end of a socket until that closes it.

    First come pickled Benches and the path of a temporary folder; the answer is a Setup for each
    backend, or what is wrong. Then each candidate, as JSON, is answered by what became
    of it. The folder goes when the worker does.
    """
    connection = Connection(socket)
    benches, folder = pickle.loads(connection.recv_bytes())
    serve(connection, Path(folder), set_up(benches))


def set_up(benches: Sequence[Bench], all_cores: bool = False) -> dict[str, Stages] | KernelError:
    """The benches by backend, or what is wrong. all_cores: no other process sets up the same."""
    try:
        return _served(benches, all_cores)
    except KernelError as error:
        return error


def serve(connection: Connection, home: Path, made: dict[str, Stages] | KernelError) -> None:
    """Answers candidates until the other end closes the connection. made: of `set_up`."""
    become_reaper()
    sweep()
    kept: dict[str, _Child] = {}
    try:
        if isinstance(made, KernelError):
            connection.send_bytes(pickle.dumps(made))
            return
        setups = {
            name: replace(one.setup, sandbox=sandbox.applied(home, one.setup.limits))
            for name, one in made.items()
        }
        kept |= _opened(made, home, connection)
        connection.send_bytes(pickle.dumps(setups))
        while True:
            asked, fastest = asked_of(connection.recv_bytes())
            stages = made[asked.backend]
            outcome = attempt(stages, asked, home, connection, kept, fastest)
            connection.send_bytes(to_json(outcome).encode())
    except (EOFError, OSError, Gone):
        return
    finally:
        while kept:
            kept.popitem()[1].end(kept.values())
        while _templates:
            _templates.popitem()[1].close()
        shutil.rmtree(home, ignore_errors=True)


def _opened(made: Mapping[str, Stages], home: Path, wanted: Connection) -> dict[str, _Child]:
    """By backend, a child that has opened its device, before anybody has something to time there. One
    that could not is left out: whoever comes next tries again, and says why it fails. Gone where `wanted` is closed
    first: nothing comes from there yet."""
    begun = {
        name: _forked(one, home)
        for name, one in made.items()
        if one.lasting and isinstance(one.backend, Opens)
    }
    found: dict[str, _Child] = {}
    while begun:
        name, child = begun.popitem()
        try:
            ready = child.opens(time.monotonic() + OPENING, wanted)
        except Gone:
            end_all(child.pid)
            raise
        if ready:
            found[name] = child
        else:
            child.end([*begun.values(), *found.values()])
    return found


def become_reaper() -> None:
    """What descends from this process becomes its child when its own parent ends."""
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)


def _served(benches: Sequence[Bench], all_cores: bool) -> dict[str, Stages]:
    """By the name of its backend, each bench set up; the inputs that are timed are the same."""
    found: dict[str, Stages] = {}
    for bench in benches:
        others = next(iter(found.values()), None)
        stages = Stages.of(bench, others.timed if others else (), all_cores)
        found[stages.backend.manifest.name] = stages
    return found


def attempt(
    stages: Stages,
    asked: Candidate,
    home: Path,
    wanted: Connection,
    kept: dict[str, _Child] | None = None,
    fastest: Fastest | None = None,
) -> Evaluated:
    """What becomes of a candidate in a child; Gone where `wanted` is closed first.

    kept: children by backend that wait for another candidate; None: none is kept.  fastest: see
    `Stages.evaluate`.
    """
    idle = {} if kept is None else kept
    lasting = kept is not None and asked.source is None and stages.lasting
    child = idle.pop(asked.backend, None) if lasting else None
    if child is None or not child.ask(asked, fastest, idle.values()):
        try:
            child = _forked(stages, home, asked.source is not None)
        except OSError as error:
            return Failure("verify", "machine", f"no process can be made for it: {error}")
        child.ask(asked, fastest, idle.values())
    try:
        outcome = _watch(child, wanted)
    except BaseException:
        child.end(idle.values())
        raise
    seconds = child.seconds()
    if lasting and outcome is not None and _sound(outcome) and not child.last:
        idle[asked.backend] = child
    else:
        outcome = child.end(idle.values())
    return replace(outcome, seconds=seconds)


def _sound(outcome: Evaluated) -> bool:
    """Whether a child may go on after it: what was wrong or crashed may have left something behind."""
    if isinstance(outcome, Failure):
        early = outcome.stage in ("verify", "emit", "build") and outcome.kind == "refused"
        # Of a build that was given up: a process of its own, which is no more
        given_up = (outcome.stage, outcome.kind) == ("build", "timeout")
        return early or given_up or outcome.slow
    return True


def _forked(stages: Stages, home: Path, edited: bool = False) -> _Child:
    """A new child. edited: it gets a source that somebody else wrote. OSError where none can be made."""
    folder = Path(tempfile.mkdtemp(dir=home))
    group = sandbox.grouped(stages.setup.limits)
    clean = Path(tempfile.mkdtemp(dir=home)) if edited and stages.apart else None
    line = _line(stages, clean, group) if clean else None
    read, write = os.pipe()
    requests, ask = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(stages, requests, folder, write, group, line)
    for ours in (write, requests, *(() if line is None else (line,))):
        os.close(ours)
    return _Child(pid, read, ask, stages.setup.limits, folder, group, clean)


_templates: dict[str, Template] = {}  # by backend


def _line(stages: Stages, folder: Path, group: Group | None) -> int:
    """The line of a new clean process; of a new template where the last one has ended."""
    name, limits = stages.backend.manifest.name, stages.setup.limits
    if name in _templates:
        with suppress(OSError):
            return _templates[name].line(folder, limits, group)
        _templates.pop(name).close()
    _templates[name] = Template(stages.bench.machine, stages.bench.open)
    return _templates[name].line(folder, limits, group)


@dataclass(slots=True)
class _Child:
    """A child: what it has sent so far of the candidate that it has, and when it entered which stage."""

    pid: int
    pipe: int
    to: int  # where it is told of candidates
    limits: Limits
    folder: Path
    group: Group | None = None
    clean: Path | None = None  # the folder of the clean process beside it
    began: float = field(default_factory=time.monotonic)
    stages: list[tuple[str, float]] = field(default_factory=list)
    buffer: bytes = b""
    received: int = 0
    outcome: Evaluated | None = None
    turns: dict[str, float] = field(default_factory=dict)  # seconds, see `backends.turns.spent`
    in_time: bool = True
    # Seconds for a processor; None where part of its work is done by others, or nobody knows.
    waited: float | None = None
    last: bool = False  # it takes no further candidate
    ready: bool = False  # it has opened what it needs
    made: float = field(default_factory=time.monotonic)
    start: dict[str, float] = field(
        default_factory=dict
    )  # seconds until it was ready, for the first candidate

    def ask(self, asked: Candidate, fastest: Fastest | None, others: Iterable[_Child]) -> bool:
        """Gives it a candidate; False where it has ended. others: see `end`."""
        self.began, self.stages, self.turns, self.start = time.monotonic(), [], {}, {}
        self.buffer, self.received, self.outcome, self.in_time = b"", 0, None, True
        self.waited = None
        data = memoryview(to_ask(asked, fastest) + b"\n")
        try:
            while data:
                data = data[os.write(self.to, data) :]
        except BrokenPipeError:
            self.end(others)
            return False
        return True

    def opens(self, deadline: float, wanted: Connection) -> bool:
        """Waits until it is ready for candidates; False where it is not by then, or has ended. Gone where `wanted`
        is closed first."""
        waited: list[int | Connection] = [self.pipe, wanted]
        while not self.ready:
            left = max(0.0, deadline - time.monotonic())
            said = select.select(waited, [], [], left)[0]
            if wanted in said:
                raise Gone
            if not said or not self.receive():
                return False
        return True

    def end(self, others: Iterable[_Child] = ()) -> Evaluated:
        """Ends it, and leaves nothing of it; its outcome, or what its end says. others: that live on."""
        kept = {child.pid for child in others} | {made.pid for made in _templates.values()}
        status, used = end_all(self.pid, kept)
        outcome = self.outcome or _death(self, status, used)
        if self.group:
            self.group.remove()
        os.close(self.pipe)
        os.close(self.to)
        for place in filter(None, (self.folder, self.clean)):
            shutil.rmtree(place, ignore_errors=True)
        return outcome

    @property
    def stage(self) -> str:
        return self.stages[-1][0] if self.stages else "verify"

    def receive(self) -> bool:
        """Takes in what has come; False at the end."""
        data = os.read(self.pipe, 65536)
        self.received += len(data)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self._take(line)
        return bool(data) and self.received <= MOSTOUTPUT

    def _take(self, line: bytes) -> None:
        kind, _, rest = line.decode(errors="replace").partition(" ")
        try:
            if kind == "stage":
                Failure(rest, "crash", "")  # refuses what is no stage
                self.stages.append((rest, time.monotonic()))
            elif kind == "spent":
                self._spend(json.loads(rest))
            elif kind == "ready":
                self.ready, self.start = True, {START: time.monotonic() - self.made}
            elif kind == "last":
                self.last = True
            elif kind == "outcome":
                self.outcome = from_json(rest)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.outcome = Failure(self.stage, "crash", f"it sent what is no result: {error}")

    def _spend(self, told: Mapping[str, float]) -> None:
        """Adds what it has spent on turns since it said so last, in the stage that it is in."""
        for name, seconds in told.items():
            keys = [
                f"{name} turns",
                *([WAITED] if (name, self.stage) == (WAITING, "check") else []),
            ]
            for key in keys:
                self.turns[key] = self.turns.get(key, 0.0) + float(seconds)

    def seconds(self) -> dict[str, float]:
        """How long each stage took, by the clock of this process; and of that, by its own, how long it
        waited for turns on the device and had it alone; of a new process, until it was ready. A second build is one at the sizes of the check."""
        ends = [*(at for _, at in self.stages), time.monotonic()][1:]
        taken: dict[str, float] = {}
        for (name, at), end in zip(self.stages, ends, strict=True):
            key = TO_CHECK if name == "build" and name in taken else name
            taken[key] = taken.get(key, 0.0) + end - at
        return taken | self.turns | self.start


def _watch(child: _Child, wanted: Connection) -> Evaluated | None:
    """Waits for a child's result or its end; None where there is none."""
    end = os.pidfd_open(child.pid)
    try:
        child.in_time = _receive_all(child, end, wanted, child.began + child.limits.seconds)
        if not child.in_time and child.clean is None:
            child.waited = in_line(child.pid)
    finally:
        os.close(end)
    return child.outcome


def _receive_all(child: _Child, end: int, wanted: Connection, deadline: float) -> bool:
    """Reads until there is an outcome or the child has ended; False where time ran out."""
    while child.outcome is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        waited: list[int | Connection] = [child.pipe, end, wanted]
        ready, _, _ = select.select(waited, [], [], left)
        if wanted in ready:
            raise Gone
        if child.pipe in ready:
            if not child.receive():
                _close(child, end)
                return True
        elif end in ready:
            return True
    return True


def _close(child: _Child, end: int) -> None:
    """Nothing more will come. A child that lives on closed its pipe, or says too much."""
    if child.outcome is None and not select.select([end], [], [], GRACE)[0]:
        child.outcome = Failure(child.stage, "crash", "it does not keep to sending one result")


def end_all(child: int, others: Collection[int] = ()) -> tuple[int, float]:
    """Ends a child and all that descends from it; the child's wait status, and the seconds of
    processor time that it had. others: children that live on."""
    for send, whom in ((os.killpg, child), (os.kill, child)):
        try:
            send(whom, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _, status, use = os.wait4(child, 0)
    # What left the child's group has become ours, as we are a subreaper.
    while orphans := [n for n in _children() if n not in others]:
        for orphan in orphans:
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)
    return status, use.ru_utime + use.ru_stime


def _children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in text.split()]


def _death(child: _Child, status: int, used: float) -> Failure:
    """The failure of a child that ended, or had to be ended, without a result.

    used: seconds of processor time.
    """
    if not child.in_time:
        limit = f"it was still at it after {child.limits.seconds:g} s"
        kind = "machine" if starved(used, child.limits.seconds, child.waited) else "timeout"
        return Failure(child.stage, kind, limit)
    tail = _tail(child.folder / OUTPUT)
    number = os.waitstatus_to_exitcode(status)
    said = f": {tail}" if tail else ""
    most = child.limits.cpu
    if number == -signal.SIGXCPU or (number == -signal.SIGKILL and most and used >= most):
        limit = f"it was still at it after {child.limits.cpu} s of processor time"
        return Failure(child.stage, "timeout", limit)
    if child.group and child.group.out_of_memory():
        limit = f"it and what it started used more than {child.limits.total} bytes of memory"
        return Failure(child.stage, "memory", limit)
    if "bad_alloc" in tail or "MemoryError" in tail:
        return Failure(child.stage, "memory", f"it ran out of memory{said}")
    if number == -signal.SIGKILL:  # as by a machine that is out of memory
        return Failure(child.stage, "machine", f"it was killed{said}")
    if number < 0:
        return Failure(child.stage, "crash", f"it died of {signal.Signals(-number).name}{said}")
    return Failure(child.stage, "crash", f"it ended with exit code {number}{said}")


def by_disk(found: Evaluated, folder: Path, files: int | None) -> Evaluated:
    """What became of a candidate: a fault of the machine where it says that there was no room, and the disk is full
    beyond what candidates have. files: bytes of all of its own."""
    full = isinstance(found, Failure) and os.strerror(errno.ENOSPC) in found.reason
    if isinstance(found, Failure) and full and sandbox.disk_is_full(folder, files):
        return replace(found, kind="machine")
    return found


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as output:
            output.seek(max(0, file.stat().st_size - TAIL))
            return output.read().decode(errors="replace").strip()
    except OSError:
        return ""


def _child(
    stages: Stages, requests: int, folder: Path, pipe: int, group: Group | None, line: int | None
) -> None:
    """The child: shuts itself in, then evaluates and sends, until nothing more is asked. line: of the clean
    process that compiles and interprets for it. Does not return."""
    try:
        gc.freeze()  # to look through what the worker has would copy all of it
        os.setsid()
        detach(folder, requests, pipe, *(() if line is None else (line,)))
        if line is not None:
            join(line)
        limits = stages.setup.limits
        sandbox.enter(folder, limits, group)

        def enter(stage: str) -> None:
            os.write(pipe, f"spent {json.dumps(spent())}\nstage {stage}\n".encode())

        if stages.lasting and isinstance(stages.backend, Opens):
            stages.backend.open(stages.bench.machine)
        os.write(pipe, b"ready \n")
        with os.fdopen(requests, "rb") as asked:
            for number, said in enumerate(asked):
                build = folder / f"build_{number}"
                build.mkdir()
                own, fastest = asked_of(said)
                outcome = by_disk(stages.evaluate(own, build, enter, fastest), build, limits.files)
                most = limits.cpu
                ends = not stages.lasting or (most and time.process_time() > CPU_SHARE * most)
                told = f"spent {json.dumps(spent())}\n{'last' if ends else 'more'} \n"
                told += f"outcome {to_json(outcome)}\n"
                shutil.rmtree(build, ignore_errors=True)
                data = memoryview(told.encode())
                while data:
                    data = data[os.write(pipe, data) :]
    except BaseException as error:  # nothing may come back into the worker's loop
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
