"""The null backend: a nest as text, the spec's reference as the result, and an artificial time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.manifest import Manifest
from backends.null.clock import modelled_us
from backends.timeline import Bar, write_timeline
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.nest.text import nest_text
from ir.print import spec_text
from ir.reference.reference import evaluate_storage

_HEAD = "nest of "


class Null:
    """Returns the reference of the spec in the spec's dtypes, independent of the kernel."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """All statements, a line each, followed by the equations and the schedule."""
        return "\n".join((nest_text(nest, machine), spec_text(nest.variant), str(nest.schedule)))

    def admit(self, source: str) -> None:
        """Raises BackendError if a source does not begin like those of `emit`. No part of it
        runs."""
        if not source.startswith(_HEAD):
            raise BackendError("build", f"line 1: a nest starts with `{_HEAD}`: {source[:40]!r}")

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Writes the text. Raises BackendError if it is not one of `emit`."""
        self.admit(source)
        file = folder / f"kernel.{self.manifest.extension}"
        file.write_text(source, encoding="utf-8")
        return Built(file, {"lines": float(source.count("\n"))})

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The reference of the spec. The kernel is not read."""
        return dict(evaluate_storage(nest.spec, inputs, sizes))

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The artificial time, with its parts as engines."""
        parts = modelled_us(nest, machine, sizes)
        us = parts.pop("us")
        return Timing(
            us=us,
            kind=self.manifest.time_kind[0],
            figures={f"{name}_us": part for name, part in parts.items()}
            | {"busy_memory": parts["memory"] / us, "busy_vector": parts["compute"] / us},
            engines={name: part / us for name, part in parts.items()},
        )

    def profile(
        self,
        built: Built,
        nest: LoopNest,
        machine: Machine,
        sizes: Sizes,
        inputs: Arrays,
        trace: Path,
    ) -> Timing:
        """The same as `time`; the timeline has one bar for each part."""
        timing = self.time(built, nest, machine, sizes, inputs)
        bars = (Bar(name, share * timing.us) for name, share in timing.engines.items())
        write_timeline(trace, bars)
        return timing

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Always available, with the limits of the null backend."""
        return {
            "correct_by": self.manifest.correct_by[0],
            "time_kind": self.manifest.time_kind[0],
            "why": "runs the spec, not the kernel: for tests only",
            "toolchain": "null 1",
        }
