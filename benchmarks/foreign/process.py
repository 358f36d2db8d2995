"""A solution's process, from the judge's side: requests have a limit, and the end includes all
child processes."""

from __future__ import annotations

import base64
import os
import pickle
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.foreign.counted import Request
from benchmarks.foreign.frames import BadFrame, Ended, Line
from benchmarks.foreign.stopwatch import Plan
from ir.errors import KernelError
from search.evaluator.groups import Group
from search.evaluator.local import module_path
from search.evaluator.sandbox import Limits, environment, grouped
from search.evaluator.worker import become_reaper, end_all

START_SECONDS = 300.0  # For the process to import PyTorch and enter its sandbox.
GRACE = 5.0  # Seconds between the end of its line and its own end.
_OUTPUT = "output.txt"
_COMPILERS = ("CUDA_HOME",)  # Variables with the path of the compiler for inline extensions.
_TAIL = 300  # Characters of the last output of a dead process.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from benchmarks.foreign.served import main; main(int(sys.argv[1]), sys.argv[2])"
)
# Errors that report a missing installation, and the name of what is missing.
_LACKS = (
    (r"No module named '([\w.]+)'", "the Python package `{}`"),
    (r"Torch not compiled with CUDA enabled", "a CUDA device"),
    (r"0 active drivers|no NVIDIA driver|Found no NVIDIA|CUDA driver", "a CUDA device"),
    (
        r"CUDA_HOME environment variable is not set|Error finding CUDA|nvcc",
        "the CUDA compiler nvcc",
    ),
    (r"Ninja is required|ninja: not found", "ninja"),
    (
        r"CUDA error: no kernel image|CUDA is not available|must be (?:a )?CUDA tensor",
        "a CUDA device",
    ),
)


class Refused(Exception):
    """A refusal of a solution. kind: a word for programs; the message is for people."""

    def __init__(self, kind: str, reason: str):
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


@dataclass(slots=True)
class SolutionProcess:
    """The process of a solution. Call `end` after use."""

    limits: Limits
    place: str = "cpu"
    seconds: float = 60.0  # Limit of one answer.
    process: subprocess.Popen | None = None
    line: Line | None = None
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="speciate-")))
    sandbox: Mapping[str, str] = field(default_factory=dict)  # The active protection, by layer.
    group: Group | None = None  # Contains everything that it starts.

    def start(self) -> None:
        """Starts it as a separate program, whose memory has never held the judge's data."""
        become_reaper()
        here, there = socket.socketpair()
        folder = self.home / "own"
        folder.mkdir()
        own = {"TRITON_INTERPRET": "1"} if self.place == "cpu" else {}
        own |= {name: os.environ[name] for name in _COMPILERS if name in os.environ}
        with there, (self.home / _OUTPUT).open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(there.fileno()), str(folder), *module_path()],
                cwd=folder,
                env=environment(os.environ) | own,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.line, self.group = Line(here), grouped(self.limits)
        group = None
        if self.group:
            group = {"folders": [str(f) for f in self.group.folders], "held": self.group.held}
        said, _ = self._ask(
            {"limits": asdict(self.limits), "place": self.place, "group": group},
            seconds=START_SECONDS,
        )
        self.sandbox = said["sandbox"]

    def end(self) -> None:
        """Ends it, and everything that it started. A second call does nothing."""
        if self.line is not None:
            self.line.socket.close()
        if self.process is not None and self.process.returncode is None:
            self.process.returncode = end_all(self.process.pid)[0]
        if self.group:
            self.group.remove()
            self.group = None
        shutil.rmtree(self.home, ignore_errors=True)

    def load(self, source: str) -> None:
        """Runs the solution's file."""
        said, _ = self._ask({"do": "load", "source": source})
        if said.get("has") is not True:
            raise Refused("missing class", "the solution defines no class `ModelNew`")

    def make(self, arguments: Sequence[Any], state: Mapping[str, Any], seed: int) -> str:
        """Makes a model. Returns the origin of its weights."""
        text = base64.b64encode(_pickled(arguments)).decode()
        said, _ = self._ask({"do": "make", "arguments": text, "seed": seed}, dict(state))
        return str(said.get("weights", ""))[:40]

    def call(self, inputs: Sequence[Any], most: int, listed: bool = False) -> tuple[Any, Any, dict]:
        """Returns the results of a call, the inputs after it, and the rest of the answer. most:
        limit of all of these in bytes."""
        said, values = self._ask({"do": "call", "listed": listed}, list(inputs), most)
        if not isinstance(values, list) or len(values) != 2:
            raise Refused("forged", "its process sends what is no result")
        return values[0], values[1], said

    def hold(self, sets: Sequence[Any]) -> None:
        """Sends the inputs of timed calls."""
        self._ask({"do": "hold"}, list(sets))

    def times(self, plan: Plan, weights: int) -> tuple[list[float], list[list[float]]]:
        """Returns the microseconds of a plan's calls by the device's events, and sums over the
        results of each.

        weights: the seed of the sums' weights.
        """
        asked = {"do": "time", "plan": [list(each) for each in plan], "weights": weights}
        said, _ = self._ask(asked)
        try:
            us = [float(one) for one in said["us"]]
        except (KeyError, TypeError, ValueError):
            us = []
        if len(us) != len(plan):
            raise Refused("forged", "its process sends what are no times")
        return us, _sums(said, len(plan))

    def draw(self) -> None:
        """Allocates the inputs of counted calls."""
        self._ask({"do": "draw"})

    def count(self, request: Request, scales: Sequence[float]) -> list[list[float]]:
        """Returns the sums over the results of each call of a request, see `counted`."""
        asked = {"do": "count", "seed": request.seed, "calls": request.calls}
        said, _ = self._ask(asked | {"scales": list(scales)})
        return _sums(said, request.calls)

    def results(self, sets: int, most: int) -> list[Any]:
        """Returns the results of the last timed call on each set. most: limit of all of these in
        bytes."""
        _, found = self._ask({"do": "results"}, None, most)
        if not isinstance(found, list) or len(found) != sets:
            raise Refused("forged", "its process sends what are no results")
        return found

    def _ask(
        self, table: dict[str, Any], values: Any = None, most: int = 0, seconds: float | None = None
    ) -> tuple[dict[str, Any], Any]:
        limit = seconds or self.seconds
        assert self.line is not None, "it was started"
        try:
            self.line.send(table, values, limit)
            said, found = self.line.receive(most, limit)
        except TimeoutError:
            raise Refused("time-out", f"no answer to `{_doing(table)}` in {limit:g} s") from None
        except BadFrame as error:
            raise Refused("forged", f"its process sends what is no result: {error}") from None
        except Ended:
            raise self._death(table) from None
        if said.get("kind") == "memory":
            raise Refused("memory", f"it ran out of memory: {_text(said)}")
        if said.get("kind") == "raised":
            raise _raised(_doing(table), _text(said))
        return said, found

    def _death(self, table: dict[str, Any]) -> Refused:
        """Returns the refusal for the end of its process."""
        assert self.process is not None, "it was started"
        end = os.pidfd_open(self.process.pid)
        select.select([end], [], [], GRACE)  # Waits for its exit status.
        os.close(end)
        status, _ = end_all(self.process.pid)
        self.process.returncode = number = os.waitstatus_to_exitcode(status)
        tail = self._tail()
        said = f"; it said: {tail}" if tail else ""
        if self.group and self.group.out_of_memory():
            why = f"it and what it started used more than {self.limits.total} bytes of memory"
            return Refused("memory", why)
        if re.search(r"bad_alloc|MemoryError|out of memory", tail):
            return Refused("memory", f"it ran out of memory{said}")
        if number in (-signal.SIGXCPU, -signal.SIGKILL) and not tail:
            return Refused("time-out", f"it was ended at `{_doing(table)}`, as at its limit")
        if number < 0:
            return Refused("crash", f"it died of {signal.Signals(-number).name}{said}")
        return Refused("exit", f"it ended with exit code {number} and no answer{said}")

    def _tail(self) -> str:
        with (self.home / _OUTPUT).open("rb") as output:
            output.seek(max(0, os.fstat(output.fileno()).st_size - _TAIL))
            data = output.read(_TAIL)
        return data.decode(errors="replace").strip()


def _pickled(arguments: Sequence[Any]) -> bytes:
    try:
        return pickle.dumps(list(arguments))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise KernelError(
            f"what `get_init_inputs` gives cannot be handed to another process: {error}",
            allowed="numbers, texts, tensors, and lists of them",
        ) from None


def _sums(said: dict[str, Any], calls: int) -> list[list[float]]:
    """Parses the sums of so many calls from a process."""
    try:
        sums = [[float(one) for one in each] for each in said["sums"]]
    except (KeyError, TypeError, ValueError):
        sums = []
    if len(sums) != calls:
        raise Refused("forged", "its process sends what are no sums")
    return sums


def _doing(table: dict[str, Any]) -> str:
    return str(table.get("do", "start"))


def _text(said: dict[str, Any]) -> str:
    return str(said.get("text", ""))[:400]


def _raised(doing: str, text: str) -> Refused:
    """Interprets an error of a solution: a missing installation, or a fault."""
    for pattern, lacks in _LACKS:
        if found := re.search(pattern, text):
            name = lacks.format(*found.groups())
            return Refused("toolchain", f"toolchain absent: {name} ({text})")
    return Refused("raises", f"at `{doing}` it raises {text}")
