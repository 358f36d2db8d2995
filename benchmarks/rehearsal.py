"""A fake device and a fake backend, for tests that race on the CPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from backends.backend import BackendError, Built
from ir.machine import Machine
from ir.nest.nest import LoopNest


class SlowDevice:
    """A queue that is always empty, and clocks on which every call takes 100 us."""

    def __init__(self) -> None:
        self.time = 0.0

    def flush(self) -> None:
        pass

    def spin(self, us: float) -> None:
        pass

    def mark(self) -> None:
        return None

    def us_between(self, first: None, second: None) -> float:
        return 100.0

    def wait(self) -> None:
        pass

    def now(self) -> float:
        self.time += 100e-6
        return self.time


class TorchBackend:
    """Emits a given body for any nest. It refuses to build a body that contains `refuse`."""

    manifest = SimpleNamespace(name="made_up")

    def __init__(self, body: str):
        self.body = body

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        names = ", ".join(t.name for t in (*nest.spec.inputs, *nest.spec.outputs))
        return f"import torch\n\ndef launch({names}):\n    {self.body}\n"

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        if "refuse" in source:
            raise BackendError("build", "no such thing")
        file = folder / "kernel.py"
        file.write_text(source, encoding="utf-8")
        return Built(file, {"registers": 40.0, "softmax_0.registers": 40.0})
