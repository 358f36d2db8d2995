"""A worker: a warm process that forks a sandboxed child for each candidate, and outlives it.

Opening a device takes longer than most candidates. So a child continues with further candidates if
its backend permits that (`lasting`) and the sources are by our own emitters. A source by others
gets its own child, and so does the next candidate after any failure other than a toolchain's
refusal.
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
CPU_SHARE = 0.5  # share of its processor time limit after which a child takes no further candidate
OPENING = 60.0  # seconds that a child may take to open a device
GRACE = 1.0  # seconds between the end of a child's output and its exit
# Further keys of `seconds`: a build at other sizes, waiting within a check, and the start of a
# process made for the candidate, until its device is open.
TO_CHECK, WAITED, START = "build to check", "waiting to check", "start"
TAIL = 400  # characters of a dead child's last output
_SET_SUBREAPER = 36


class Gone(Exception):
    """The caller of an evaluation has gone."""


def main(socket: int) -> None:
    """Serves the process at the other end of a socket until that closes it.

    It first receives pickled Benches and the path of a temporary folder. It answers with a Setup
    for each backend, or with an error. Then it answers each candidate (JSON) with its outcome. The
    folder is removed with the worker.
    """
    connection = Connection(socket)
    benches, folder = pickle.loads(connection.recv_bytes())
    serve(connection, Path(folder), set_up(benches))


def set_up(benches: Sequence[Bench], all_cores: bool = False) -> dict[str, Stages] | KernelError:
    """The stages of the benches by backend, or an error. all_cores: whether no other process sets
    up the same at this time."""
    try:
        return _served(benches, all_cores)
    except KernelError as error:
        return error


def serve(connection: Connection, home: Path, made: dict[str, Stages] | KernelError) -> None:
    """Answers candidates until the other end closes the connection. made: from `set_up`."""
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
    """By backend, a child that has opened its device before the first candidate.

    A child that could not is left out: the next one tries again and reports the error. Raises Gone
    if `wanted` is closed first; it sends nothing before that.
    """
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
    """Makes orphaned descendants children of this process."""
    ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)


def _served(benches: Sequence[Bench], all_cores: bool) -> dict[str, Stages]:
    """The stages of each bench, by backend name. They share the timed inputs."""
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
    """The outcome of a candidate in a child. Raises Gone if `wanted` is closed first.

    kept: idle children by backend; None: none is kept. fastest: see `Stages.evaluate`.
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
    """Whether a child may continue after an outcome. Wrong results and crashes may have corrupted
    it."""
    if isinstance(outcome, Failure):
        early = outcome.stage in ("verify", "emit", "build") and outcome.kind == "refused"
        # A build that was given up ran in its own process, which has ended.
        given_up = (outcome.stage, outcome.kind) == ("build", "timeout")
        return early or given_up or outcome.slow
    return True


def _forked(stages: Stages, home: Path, edited: bool = False) -> _Child:
    """A new child. Raises OSError if none can be made. edited: whether it gets a source by
    others."""
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
    """The line to a new clean process. Starts a new template if the last one has ended."""
    name, limits = stages.backend.manifest.name, stages.setup.limits
    if name in _templates:
        with suppress(OSError):
            return _templates[name].line(folder, limits, group)
        _templates.pop(name).close()
    _templates[name] = Template(stages.bench.machine, stages.bench.open)
    return _templates[name].line(folder, limits, group)


@dataclass(slots=True)
class _Child:
    """A child: its received output for the current candidate, and the times of its stages."""

    pid: int
    pipe: int
    to: int  # descriptor for requests
    limits: Limits
    folder: Path
    group: Group | None = None
    clean: Path | None = None  # folder of its clean process
    began: float = field(default_factory=time.monotonic)
    stages: list[tuple[str, float]] = field(default_factory=list)
    buffer: bytes = b""
    received: int = 0
    outcome: Evaluated | None = None
    turns: dict[str, float] = field(default_factory=dict)  # seconds, see `backends.turns.spent`
    in_time: bool = True
    # Seconds spent waiting for a processor; None if other processes do part of its work, or if
    # unknown.
    waited: float | None = None
    last: bool = False  # whether it takes no further candidate
    ready: bool = False  # whether it has opened its device
    made: float = field(default_factory=time.monotonic)
    # Seconds until it was ready, for the first candidate.
    start: dict[str, float] = field(default_factory=dict)

    def ask(self, asked: Candidate, fastest: Fastest | None, others: Iterable[_Child]) -> bool:
        """Gives it a candidate. Returns False if it has ended. others: see `end`."""
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
        """Waits until it is ready for candidates. Returns False if it is not ready by the deadline
        or has ended. Raises Gone if `wanted` is closed first."""
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
        """Ends it with all its descendants. Returns its outcome, or the failure that its end means.
        others: children to keep."""
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
        """Reads available output. Returns False at its end."""
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
                Failure(rest, "crash", "")  # raises ValueError for an unknown stage
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
        """Adds the time spent on turns since the last report, to the current stage."""
        for name, seconds in told.items():
            keys = [
                f"{name} turns",
                *([WAITED] if (name, self.stage) == (WAITING, "check") else []),
            ]
            for key in keys:
                self.turns[key] = self.turns.get(key, 0.0) + float(seconds)

    def seconds(self) -> dict[str, float]:
        """The seconds of each stage by this process's clock; the child's seconds of waiting for and
        holding the device; and the start of a new process. A second build is one at the sizes of
        the check."""
        ends = [*(at for _, at in self.stages), time.monotonic()][1:]
        taken: dict[str, float] = {}
        for (name, at), end in zip(self.stages, ends, strict=True):
            key = TO_CHECK if name == "build" and name in taken else name
            taken[key] = taken.get(key, 0.0) + end - at
        return taken | self.turns | self.start


def _watch(child: _Child, wanted: Connection) -> Evaluated | None:
    """Waits for a child's result or its end. Returns None if there is no result."""
    end = os.pidfd_open(child.pid)
    try:
        child.in_time = _receive_all(child, end, wanted, child.began + child.limits.seconds)
        if not child.in_time and child.clean is None:
            child.waited = in_line(child.pid)
    finally:
        os.close(end)
    return child.outcome


def _receive_all(child: _Child, end: int, wanted: Connection, deadline: float) -> bool:
    """Reads until there is an outcome or the child has ended. Returns False if time is over."""
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
    """Handles the end of output. A child that stays alive has closed its pipe or sends too much."""
    if child.outcome is None and not select.select([end], [], [], GRACE)[0]:
        child.outcome = Failure(child.stage, "crash", "it does not keep to sending one result")


def end_all(child: int, others: Collection[int] = ()) -> tuple[int, float]:
    """Kills a child and all its descendants. Returns the child's wait status and its seconds of
    processor time.

    others: children to keep.
    """
    for send, whom in ((os.killpg, child), (os.kill, child)):
        try:
            send(whom, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _, status, use = os.wait4(child, 0)
    # Processes that left the child's group are now our children, because we are a subreaper.
    while orphans := [n for n in _children() if n not in others]:
        for orphan in orphans:
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)
    return status, use.ru_utime + use.ru_stime


def _children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in text.split()]


def _death(child: _Child, status: int, used: float) -> Failure:
    """The failure of a child that ended, or was killed, without a result.

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
    if number == -signal.SIGKILL:  # for example because the machine was out of memory
        return Failure(child.stage, "machine", f"it was killed{said}")
    if number < 0:
        return Failure(child.stage, "crash", f"it died of {signal.Signals(-number).name}{said}")
    return Failure(child.stage, "crash", f"it ended with exit code {number}{said}")


def by_disk(found: Evaluated, folder: Path, files: int | None) -> Evaluated:
    """The outcome, as a machine fault if it reports a full disk and the disk is full for other
    reasons than the candidate's files.

    files: limit on the candidate's files in bytes.
    """
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
    """Runs the child: enters the sandbox, then evaluates and sends outcomes until there are no
    requests. Does not return.

    line: to the clean process that compiles and interprets for it.
    """
    try:
        gc.freeze()  # a collection of the worker's objects would copy all their memory
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
    except BaseException as error:  # no exception may reach the worker's loop
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
