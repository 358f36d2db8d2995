"""Kernels of many problems, each built once: a folder for each, with its launches.

If a kernel does not build as scheduled, it is built without prefetching copies, else with the
simplest schedule. Its folder records this, and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backends.backend import BackendError, Built
from backends.parameters import as_rows, of_rows, parameters
from backends.program.launcher import Launcher, launcher, takes_tensors
from backends.program.saved import NETWORK
from backends.program.sealed import Sealed
from backends.registry import REGISTRY, backend_for, served_by, target
from backends.served import Served
from ir.autoschedule.autoschedule import plain
from ir.digest import text_digest
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule, parse_spec
from ir.spec import Spec

NOTE = "built.json"
AHEAD = ("pipeline", "copy")  # Verbs of prefetching copies.


@dataclass(frozen=True, slots=True)
class KernelBuild:
    """A kernel to build, as texts."""

    spec: str
    schedule: str
    source: str
    target: str
    backend: str
    folder: Path  # Its own folder.
    variant: str = ""  # The equations that the schedule is for. Empty: the spec's own.

    @property
    def served(self) -> Served:
        """The backend that builds it."""
        machine = target(self.target)
        backend = backend_for(machine, self.backend)
        return Served(backend, served_by(machine, backend))


def jobs(sealed: Sealed, folder: Path) -> Iterator[KernelBuild]:
    """Yields the kernels of a saved program. folder: of all kernels."""
    first = sealed.facts["backend"]
    makers = sealed.table(NETWORK).get("backends", {})
    for name in sorted(f for f in sealed.files if f.endswith("/spec.kir")):
        here = name.removesuffix("/spec.kir")
        kernel = here.rpartition("/")[2]
        backend = makers.get(kernel, first)
        source = sealed.text(f"{here}/kernel.{REGISTRY.manifest(backend).extension}")
        yield KernelBuild(
            sealed.text(name),
            sealed.text(f"{here}/schedule.sched"),
            source,
            sealed.facts["target"],
            backend,
            folder / f"{kernel}_{text_digest(source)}",
            sealed.text(f"{here}/variant.kir") if f"{here}/variant.kir" in sealed.files else "",
        )


def build(job: KernelBuild) -> str:
    """Builds a kernel, unless it exists. Returns why there is none; empty if there is one."""
    note = job.folder / NOTE
    if note.is_file():
        return json.loads(note.read_text(encoding="utf-8"))["reason"]
    by = job.served
    faults: list[str] = []
    for how, made in _tries(job, by.machine):
        try:
            table = _built(job, made(), by, job.folder / how)
            _noted(job, {**table, "how": how, "faults": faults, "reason": ""})
            return ""
        except (KernelError, BackendError) as error:
            faults.append(f"{how}: {error}"[:300])
    _noted(job, {"reason": "; ".join(faults)})
    return "; ".join(faults)


def _tries(job: KernelBuild, machine: Machine) -> Iterator[tuple[str, Callable[[], LoopNest]]]:
    """Yields the ways to build a kernel: a name, and a function that returns the nest."""
    spec, schedule = parse_spec(job.spec), parse_schedule(job.schedule)
    variant = parse_spec(job.variant) if job.variant else spec
    yield "scheduled", lambda: lower(variant, schedule, machine, {})
    kept = tuple(d for d in schedule.decisions if d.verb not in AHEAD)
    if kept != schedule.decisions:
        yield "unstaged", lambda: lower(variant, replace(schedule, decisions=kept), machine, {})
    yield "plain", lambda: lower(spec, plain(spec, machine, {}), machine, {})


def _built(job: KernelBuild, nest: LoopNest, by: Served, folder: Path) -> dict[str, Any]:
    backend, machine = by.backend, by.machine
    folder.mkdir(parents=True, exist_ok=True)
    source = job.source if folder.name == "scheduled" else backend.emit(nest, machine)
    built = backend.build(source, nest, machine, folder)
    return {
        "file": str(built.file.relative_to(job.folder)),
        "tensors": as_rows(parameters(nest), {}),
        "figures": {k: v for k, v in built.figures.items() if "." not in k},
        "functions": [launch.name for launch in nest.launches],
    }


def _noted(job: KernelBuild, table: dict[str, Any]) -> None:
    """Writes the result of a kernel atomically, because other processes may build it too."""
    job.folder.mkdir(parents=True, exist_ok=True)
    part = job.folder / f"{NOTE}.part"
    part.write_text(json.dumps(table), encoding="utf-8")
    part.replace(job.folder / NOTE)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A kernel as it was built."""

    job: KernelBuild
    table: Mapping[str, Any]  # Contents of its note.

    @property
    def file(self) -> Path:
        return self.job.folder / self.table["file"]

    @property
    def launcher(self) -> Launcher:
        """The launcher of the kernel."""
        by = self.job.served
        if takes_tensors(by.backend):
            tensors = of_rows(self.table["tensors"])
            return Launcher(tensors, by.backend.launcher(self.file, tensors, by.machine))
        nest = dict(_tries(self.job, by.machine))[self.table["how"]]()
        return launcher(by.backend, Built(self.file), nest, by.machine)


@dataclass(frozen=True, slots=True)
class BuiltKernels:
    """The kernels of a saved program, as they were built."""

    kernels: Mapping[str, BuiltKernel]  # By the spec's name.

    @staticmethod
    def of(sealed: Sealed, folder: Path) -> BuiltKernels:
        """Finds the kernels. Raises KernelError if one was not built."""
        found = {}
        for job in jobs(sealed, folder):
            name = parse_spec(job.spec).name
            note = job.folder / NOTE
            if not note.is_file():
                raise KernelError(f"kernel `{name}` is not built")
            table = json.loads(note.read_text(encoding="utf-8"))
            if table["reason"]:
                raise KernelError(f"kernel `{name}`: {table['reason']}")
            found[name] = BuiltKernel(job, table)
        return BuiltKernels(found)

    def launcher(self, spec: Spec) -> Launcher:
        """Returns the launcher of a kernel."""
        return self.kernels[spec.name].launcher

    @property
    def functions(self) -> frozenset[str]:
        """The functions of all sources, which may run on the device."""
        return frozenset(f for one in self.kernels.values() for f in one.table["functions"])

    @property
    def plain(self) -> list[str]:
        """The kernels that did not build as scheduled."""
        return sorted(self.faults)

    @property
    def faults(self) -> dict[str, list[str]]:
        """Why these did not, by kernel: each way that was tried, with its error."""
        return {n: one.table["faults"] for n, one in self.kernels.items() if one.table["faults"]}
