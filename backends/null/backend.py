"""The null backend: a nest as text, the spec's reference as its result, a made-up time."""

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
    """Runs whatever the spec says, in the spec's own formats, whatever the kernel is."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """Every statement, one a line, then the equations and the decisions that gave them."""
        return "\n".join((nest_text(nest, machine), spec_text(nest.variant), str(nest.schedule)))

    def admit(self, source: str) -> None:
        """BackendError where a source does not begin as those that `emit` wrote; nothing of it runs."""
        if not source.startswith(_HEAD):
            raise BackendError("build", f"line 1: a nest starts with `{_HEAD}`: {source[:40]!r}")

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Writes the text; BackendError where it is not one that `emit` wrote."""
        self.admit(source)
        file = folder / f"kernel.{self.manifest.extension}"
        file.write_text(source, encoding="utf-8")
        return Built(file, {"lines": float(source.count("\n"))})

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """What the spec gives; nothing of the kernel is looked at."""
        return dict(evaluate_storage(nest.spec, inputs, sizes))

    def time(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> Timing:
        """The time of the made-up clock, with its parts as engines."""
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
        """As `time`; the timeline has one bar for each part."""
        timing = self.time(built, nest, machine, sizes, inputs)
        bars = (Bar(name, share * timing.us) for name, share in timing.engines.items())
        write_timeline(trace, bars)
        return timing

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Always all that it offers, which is little."""
        return {
            "correct_by": self.manifest.correct_by[0],
            "time_kind": self.manifest.time_kind[0],
            "why": "runs the spec, not the kernel: for tests only",
            "toolchain": "null 1",
        }
