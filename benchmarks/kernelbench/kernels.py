"""Kernels of many problems, each built once: a folder for each, with what is launched.

A kernel that does not build as it was scheduled is built as plainly as can be; the folder says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.backend import BackendError
from backends.parameters import parameters
from backends.program.launcher import Launcher, takes_tensors
from backends.program.sealed import Sealed
from backends.registry import backend_for, target
from ir.autoschedule.autoschedule import plain
from ir.digest import text_digest
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest, Parameter
from ir.parse.parse import parse_schedule, parse_spec
from ir.sizes import value
from ir.spec import Number, Spec

NOTE = "built.json"
_FUNCTION = re.compile(r"@triton\.jit[^\n]*\ndef (\w+)\(")


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """A kernel to build: texts."""

    spec: str
    schedule: str
    source: str
    target: str
    folder: Path  # its own
    variant: str = ""  # the equations that the schedule is for; empty: the spec's own


def jobs(sealed: Sealed, folder: Path) -> Iterator[KernelBuild]:
    """The kernels of a saved program. folder: of all kernels."""
    ending = backend_for(target(sealed.facts["target"])).manifest.extension
    for name in sorted(f for f in sealed.files if f.endswith("/spec.kir")):
        here = name.removesuffix("/spec.kir")
        source = sealed.text(f"{here}/kernel.{ending}")
        yield KernelBuild(
            sealed.text(name),
            sealed.text(f"{here}/schedule.sched"),
            source,
            sealed.facts["target"],
            folder / f"{here.rpartition('/')[2]}_{text_digest(source)}",
            sealed.text(f"{here}/variant.kir") if f"{here}/variant.kir" in sealed.files else "",
        )


def build(job: KernelBuild) -> str:
    """Builds a kernel, unless that was done before; gives why there is none, else nothing."""
    note = job.folder / NOTE
    if note.is_file():
        return json.loads(note.read_text(encoding="utf-8"))["reason"]
    machine = target(job.target)
    spec = parse_spec(job.spec)
    faults = []
    for how, made in _tries(job, spec, machine):
        try:
            table = _built(job, made(), machine, job.folder / how)
            _noted(job, {**table, "how": how, "faults": faults, "reason": ""})
            return ""
        except (KernelError, BackendError) as error:
            faults.append(f"{how}: {error}"[:300])
    _noted(job, {"reason": "; ".join(faults)})
    return "; ".join(faults)


def _tries(job: KernelBuild, spec: Spec, machine: Machine) -> Iterator[tuple[str, Any]]:
    """The ways to build a kernel, by name: the nest of each."""
    schedule = parse_schedule(job.schedule)
    variant = parse_spec(job.variant) if job.variant else spec
    yield "scheduled", lambda: lower(variant, schedule, machine, {})
    yield "plain", lambda: lower(spec, plain(spec, machine, {}), machine, {})


def _built(job: KernelBuild, nest: LoopNest, machine: Machine, folder: Path) -> dict[str, Any]:
    backend = backend_for(machine)
    folder.mkdir(parents=True, exist_ok=True)
    source = job.source if folder.name == "scheduled" else backend.emit(nest, machine)
    built = backend.build(source, nest, machine, folder)
    return {
        "file": str(built.file.relative_to(job.folder)),
        "tensors": [
            [p.name, p.dtype, [value(e, {}) for e in p.shape], p.role] for p in parameters(nest)
        ],
        "figures": {k: v for k, v in built.figures.items() if "." not in k},
        "functions": _FUNCTION.findall(source),
    }


def _noted(job: KernelBuild, table: dict[str, Any]) -> None:
    """Writes what became of a kernel; never half of it, as others may build it too."""
    job.folder.mkdir(parents=True, exist_ok=True)
    part = job.folder / f"{NOTE}.part"
    part.write_text(json.dumps(table), encoding="utf-8")
    part.replace(job.folder / NOTE)


@dataclass(frozen=True, slots=True)
class BuiltKernels:
    """The kernels of a saved program, as they were built."""

    folders: dict[str, Path]
    tables: dict[str, dict[str, Any]]  # by the spec's name

    @staticmethod
    def of(sealed: Sealed, folder: Path) -> BuiltKernels:
        """KernelError where one was not built."""
        folders, tables = {}, {}
        for job in jobs(sealed, folder):
            name = parse_spec(job.spec).name
            note = job.folder / NOTE
            if not note.is_file():
                raise KernelError(f"kernel `{name}` is not built")
            tables[name] = json.loads(note.read_text(encoding="utf-8"))
            folders[name] = job.folder
            if tables[name]["reason"]:
                raise KernelError(f"kernel `{name}`: {tables[name]['reason']}")
        return BuiltKernels(folders, tables)

    def launcher(self, spec: Spec, machine: Machine) -> Launcher | None:
        """What launches a kernel; None where its backend takes no tensors."""
        backend = backend_for(machine)
        if not takes_tensors(backend):
            return None
        table = self.tables[spec.name]
        rows = table["tensors"]
        tensors = tuple(Parameter(n, d, tuple(map(Number, s)), role) for n, d, s, role in rows)
        file = self.folders[spec.name] / table["file"]
        return Launcher(tensors, backend.launcher(file, tensors, machine))

    @property
    def functions(self) -> frozenset[str]:
        """What may run on the device: the functions of all sources."""
        return frozenset(f for table in self.tables.values() for f in table["functions"])

    @property
    def plain(self) -> list[str]:
        """The kernels that did not build as they were scheduled."""
        return sorted(name for name, t in self.tables.items() if t["how"] != "scheduled")
