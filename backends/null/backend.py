"""The null backend: a nest as text, the spec's reference as its result, a made-up time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from backends.backend import Arrays, BackendError, Built, Sizes, Timing
from backends.manifest import Manifest
from backends.null.clock import modelled_us
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.print import expression_text, spec_text
from ir.reference.reference import evaluate_storage
from ir.spec import Expr

_HEAD = "nest of "


class Null:
    """Runs whatever the spec says, in the spec's own formats, whatever the kernel is."""

    def __init__(self, manifest: Manifest):
        self.manifest = manifest

    def emit(self, nest: LoopNest, machine: Machine) -> str:
        """The equations, the decisions and every statement, one a line."""
        lines = [f"{_HEAD}{nest.spec.name} for {machine.name}", "", spec_text(nest.formulation)]
        lines.append(str(nest.schedule))
        for launch in nest.launches:
            lines += _lines(launch, 0)
        return "\n".join(lines) + "\n"

    def build(self, source: str, nest: LoopNest, machine: Machine, folder: Path) -> Built:
        """Writes the text; BackendError where it is not one that `emit` wrote."""
        if not source.startswith(_HEAD):
            raise BackendError("build", f"line 1: a nest starts with `{_HEAD}`: {source[:40]!r}")
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
        bars, start = [], 0.0
        for name, share in timing.engines.items():
            length = share * timing.us
            bars.append({"name": name, "ph": "X", "ts": start, "dur": length, "pid": 0, "tid": 0})
            start += length
        trace.write_text(json.dumps({"traceEvents": bars}), encoding="utf-8")
        return timing

    def available(self, machine: Machine) -> Mapping[str, Any]:
        """Always all that it offers, which is little."""
        return {
            "correct_by": self.manifest.correct_by[0],
            "time_kind": self.manifest.time_kind[0],
            "why": "runs the spec, not the kernel: for tests only",
            "toolchain": "null 1",
        }


def _lines(node: Any, depth: int) -> Iterator[str]:
    """A value as indented text: a line for each field, blocks below."""
    pad = "  " * depth
    yield f"{pad}{type(node).__name__.lower()}"
    for f in fields(node):
        held = getattr(node, f.name)
        if isinstance(held, tuple) and any(is_dataclass(x) for x in held):
            yield f"{pad}  {f.name}:"
            for item in held:
                yield from _lines(item, depth + 2) if _deep(item) else [f"{pad}    {item}"]
        elif held not in (None, (), "") and f.name != "place":
            yield f"{pad}  {f.name} = {_text(held)}"


def _deep(item: Any) -> bool:
    return is_dataclass(item) and not isinstance(item, Expr)


def _text(held: Any) -> str:
    try:
        return expression_text(held) if isinstance(held, Expr) else str(held)
    except AssertionError:  # a node that only a nest has
        return repr(held)
