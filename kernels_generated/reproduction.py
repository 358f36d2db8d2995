"""A reproduction: a record's kernel made and evaluated again, from its texts alone."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from backends.backend import Backend
from backends.registry import backend_for, target
from ir.errors import KernelError
from ir.lower import lower
from ir.machine import Machine
from ir.parse import parse_schedule, parse_spec, parse_workload
from ir.print import spec_text
from ir.workload import Workload
from search.candidate import Candidate
from search.evaluation import Evaluated
from search.evaluator.stages import Bench, Stages
from search.record import SCHEDULE, SPEC, Stored


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A stored kernel with what it takes to make it again."""

    stored: Stored
    workload: Workload
    machine: Machine
    backend: Backend

    @property
    def can(self) -> Mapping[str, Any]:
        """What can be done here, in the backend's words."""
        return self.backend.available(self.machine)

    def emit(self) -> str:
        """The source that the backend gives now; KernelError where the schedule does not fit."""
        spec = parse_spec(self.formulation)
        schedule = parse_schedule(self.stored.schedule, SCHEDULE)
        nest = lower(spec, schedule, self.machine, self.stored.record.shape)
        return self.backend.emit(nest, self.machine)

    def evaluate(self, source: str | None, schedule: str | None = None) -> Evaluated:
        """Builds, checks at all shapes and times: a source, or what is emitted for a schedule
        (the spec's own equations then, and one check shape)."""
        record, checks = self.stored.record, self.workload.checks
        bench = Bench(
            spec=spec_text(self.workload.spec),
            machine=self.machine,
            open=partial(backend_for, self.machine, record.backend),
            sizes=record.shape,
            checks=checks if schedule is None else checks[:1],
        )
        tried = Candidate(
            formulation=self.formulation if schedule is None else bench.spec,
            schedule=schedule or self.stored.schedule,
            target=record.target,
            backend=record.backend,
            source=source,
        )
        with tempfile.TemporaryDirectory(prefix="speciate-") as folder:
            return Stages.of(bench).evaluate(tried, Path(folder), lambda stage: None)

    @property
    def formulation(self) -> str:
        """The text of the equations that the schedule is for."""
        return self.stored.formulation or spec_text(self.workload.spec)


def lacking(stored: Stored) -> str:
    """Which Python package that the record's backend needs is not here; empty where none is."""
    try:
        reproduction(stored)
    except KernelError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError):
            return f"`{stored.record.backend}` needs the Python package `{cause.name}`"
        raise
    return ""


def reproduction(stored: Stored) -> Reproduction:
    """The reproduction of a record; KernelError where its target or backend is not there, or
    its spec does not parse."""
    machine = target(stored.record.target)
    return Reproduction(
        stored=stored,
        workload=parse_workload(stored.workload, SPEC),
        machine=machine,
        backend=backend_for(machine, stored.record.backend),
    )
