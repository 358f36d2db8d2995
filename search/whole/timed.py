"""Networks of given kernels, built and timed as a whole, in a process of their own: kernels may be
code of others, and a device that was opened here could not be used by what is forked."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backends.registry import backend_for
from backends.served import Served
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.network import Network
from ir.spec import Spec
from search.core.lowered import lowered
from search.evaluator.local import module_path
from search.whole.times import WholeTimes

SECONDS = 900.0  # that building and timing networks may take
# A program of its own: `multiprocessing` would run the caller's main file again.
_BOOT = f"import sys; sys.path[:] = sys.argv[1:]; from {__package__}.child import main; main()"


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """A kernel of a network."""

    backend: str  # its name
    variant: str  # the equations that the schedule is for
    schedule: str
    source: str
    edited: bool = False  # somebody else wrote the source


@dataclass(frozen=True, slots=True)
class TimedNetwork:
    """What runs apart."""

    call: Network
    before: Network | None  # computes constants; None where there are none
    machines: Mapping[str, Machine]  # the target by backend, the program's own first
    kernels: Mapping[str, KernelTexts]  # by the name of a kernel, those of `before` among them
    each: bool = True  # whether each kernel is timed, too

    def served(self, spec: Spec) -> Served:
        """The backend of a kernel."""
        name = self.kernels[spec.name].backend
        return Served(backend_for(self.machines[name], name), self.machines[name])

    def nest(self, spec: Spec) -> LoopNest:
        """That of a kernel; KernelError where its schedule does not lower."""
        texts = self.kernels[spec.name]
        return lowered(texts.variant, texts.schedule, self.machines[texts.backend], {})


class _Process:
    """A process that imports PyTorch, and then waits for networks. It ends when this one does."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="whole-")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, *module_path()],
            cwd=self._folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._folder.cleanup()

    def times_of(self, networks: Sequence[TimedNetwork]) -> list[WholeTimes | str]:
        """As below; it answers once."""
        asked, said = (Path(self._folder.name) / name for name in ("asked", "said"))
        asked.write_bytes(pickle.dumps(list(networks)))
        try:
            _, words = self._process.communicate(f"{asked}\n{said}\n".encode(), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return [f"it takes longer than {SECONDS:g} s"] * len(networks)
        if not said.is_file():
            last = words.decode(errors="replace").strip().splitlines()[-1:]
            why = f"its process ended with {self._process.wait()}: {''.join(last)}"
            return [why] * len(networks)
        found = json.loads(said.read_text(encoding="utf-8"))
        return [one if isinstance(one, str) else WholeTimes(**one) for one in found]


_waiting: list[_Process] = []


def prestart() -> None:
    """Has a process begin that `times_of` will use: to import PyTorch takes it seconds."""
    if not _waiting:
        _waiting.append(_Process())


def times_of(networks: Sequence[TimedNetwork]) -> list[WholeTimes | str]:
    """How long calls of some networks take (`whole_times`), or why that cannot be had. They are built
    and run in one process of its own."""
    with _waiting.pop() if _waiting else _Process() as process:
        return process.times_of(networks)
