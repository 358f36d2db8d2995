"""A worker: a warm process that forks a sandboxed child for each candidate, and outlives it."""

from __future__ import annotations

import ctypes
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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path

from backends.busy import starved
from ir.errors import KernelError
from search.core.candidate import Candidate, candidate
from search.core.evaluation import Evaluated, Failure, from_json, to_json
from search.evaluator import sandbox
from search.evaluator.groups import Group, sweep
from search.evaluator.sandbox import Limits
from search.evaluator.stages import Bench, Stages

MOST_OUTPUT = 1 << 20  # bytes that a child may send: a thousand times what it needs
MOST_FILES = 1 << 16
GRACE = 1.0  # seconds between the end of a child's output and its own
TAIL = 400  # characters of a dead child's last words
_SET_SUBREAPER = 36
_OUTPUT = "output.txt"


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
    try:
        if isinstance(made, KernelError):
            connection.send_bytes(pickle.dumps(made))
            return
        setups = {
            name: replace(one.setup, sandbox=sandbox.applied(home, one.setup.limits))
            for name, one in made.items()
        }
        connection.send_bytes(pickle.dumps(setups))
        while True:
            asked = candidate(json.loads(connection.recv_bytes()))
            outcome = attempt(made[asked.backend], asked, home, connection)
            connection.send_bytes(to_json(outcome).encode())
    except (EOFError, OSError, Gone):
        return
    finally:
        shutil.rmtree(home, ignore_errors=True)


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


def attempt(stages: Stages, asked: Candidate, home: Path, wanted: Connection) -> Evaluated:
    """What becomes of a candidate in a child of its own; Gone where `wanted` is closed first."""
    folder = Path(tempfile.mkdtemp(dir=home))
    read, write = os.pipe()
    group = sandbox.grouped(stages.setup.limits)
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(stages, asked, folder, write, group)
    os.close(write)
    try:
        return _watch(_Child(child, read, stages.setup.limits, folder, group), wanted)
    finally:
        if group:
            group.remove()
        os.close(read)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class _Child:
    """A child at work: what it has sent so far, and when it entered which stage."""

    pid: int
    pipe: int
    limits: Limits
    folder: Path
    group: Group | None = None
    began: float = field(default_factory=time.monotonic)
    stages: list[tuple[str, float]] = field(default_factory=list)
    buffer: bytes = b""
    received: int = 0
    outcome: Evaluated | None = None

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
        return bool(data) and self.received <= MOST_OUTPUT

    def _take(self, line: bytes) -> None:
        kind, _, rest = line.decode(errors="replace").partition(" ")
        try:
            if kind == "stage":
                Failure(rest, "crash", "")  # refuses what is no stage
                self.stages.append((rest, time.monotonic()))
            elif kind == "outcome":
                self.outcome = from_json(rest)
        except (ValueError, KeyError, TypeError) as error:
            self.outcome = Failure(self.stage, "crash", f"it sent what is no result: {error}")

    def seconds(self) -> dict[str, float]:
        """How long each stage took, by the clock of this process."""
        ends = [*(at for _, at in self.stages), time.monotonic()][1:]
        spent: dict[str, float] = {}
        for (name, at), end in zip(self.stages, ends, strict=True):
            spent[name] = spent.get(name, 0.0) + end - at
        return spent


def _watch(child: _Child, wanted: Connection) -> Evaluated:
    """Waits for a child's result or its end, and leaves nothing of it alive."""
    end = os.pidfd_open(child.pid)
    deadline = child.began + child.limits.seconds
    try:
        in_time = _receive_all(child, end, wanted, deadline)
    finally:
        os.close(end)
        status, used = end_all(child.pid)
    outcome = child.outcome or _death(child, status, used, in_time)
    return replace(outcome, seconds=child.seconds())


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


def end_all(child: int) -> tuple[int, float]:
    """Ends a child and all that descends from it; the child's wait status, and the seconds of
    processor time that it had."""
    for send, whom in ((os.killpg, child), (os.kill, child)):
        try:
            send(whom, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _, status, use = os.wait4(child, 0)
    # What left the child's group has become ours, as we are a subreaper.
    while orphans := _children():
        for orphan in orphans:
            os.kill(orphan, signal.SIGKILL)
            os.waitpid(orphan, 0)
    return status, use.ru_utime + use.ru_stime


def _children() -> list[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(word) for word in text.split()]


def _death(child: _Child, status: int, used: float, in_time: bool) -> Failure:
    """The failure of a child that ended, or had to be ended, without a result.

    used: seconds of processor time.
    """
    if not in_time:
        limit = f"it was still at it after {child.limits.seconds:g} s"
        kind = "machine" if starved(used, child.limits.seconds) else "timeout"
        return Failure(child.stage, kind, limit)
    tail = _tail(child.folder / _OUTPUT)
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


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as output:
            output.seek(max(0, file.stat().st_size - TAIL))
            return output.read().decode(errors="replace").strip()
    except OSError:
        return ""


def _child(stages: Stages, asked: Candidate, folder: Path, pipe: int, group: Group | None) -> None:
    """The child: shuts itself in, evaluates, sends, ends. Does not return."""
    try:
        gc.freeze()  # to look through what the worker has would copy all of it
        os.setsid()
        _detach(folder, pipe)
        sandbox.enter(folder, stages.setup.limits, group)

        def enter(stage: str) -> None:
            os.write(pipe, f"stage {stage}\n".encode())

        build = folder / "build"
        build.mkdir()
        outcome = stages.evaluate(asked, build, enter)
        data = memoryview(f"outcome {to_json(outcome)}\n".encode())
        while data:
            data = data[os.write(pipe, data) :]
    except BaseException as error:  # nothing may come back into the worker's loop
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _detach(folder: Path, pipe: int) -> None:
    """Closes every file but the pipe; output goes to a file in the folder."""
    os.chdir(folder)
    nothing = os.open("/dev/null", os.O_RDONLY)
    output = os.open(folder / _OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, MOST_FILES)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    tempfile.tempdir = None
    os.environ.update(sandbox.homes(folder))
