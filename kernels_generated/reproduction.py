"""A reproduction: a record's kernel made and evaluated again, from its texts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from backends.backend import Backend
from backends.dispatched import Dispatched, Part
from backends.registry import backend_for, served_by, target
from ir.errors import KernelError
from ir.guards import WITHIN
from ir.lower.lower import fits, lower
from ir.machine import Machine
from ir.parse.parse import parse_schedule, parse_spec, parse_workload
from ir.print import spec_text
from ir.workload import Sizes, Workload
from kernels_generated.guarded import affordable, shapes_of
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure, Timed
from search.core.workload import WeightedShape, heaviest, mean, widest
from search.evaluator.alone import evaluated_alone
from search.evaluator.stages import Bench, Stages
from search.record.record import SCHEDULE, SPEC, Stored
from search.record.specialization import numbered


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

    def emit(self, kernel: int = 0) -> str:
        """The source that the backend gives now for a kernel, by its number; KernelError where
        the schedule does not fit."""
        part = self._part(kernel)
        nest = lower(part.variant, part.schedule, self.machine, part.sizes)
        return self.backend.emit(nest, self.machine)

    def emit_all(self) -> tuple[str, ...]:
        """The sources of all kernels now; of those that were edited freely the stored ones."""
        stored = self.stored
        free = (
            stored.record.freely_edited,
            *(v.freely_edited for v in stored.record.specializations),
        )
        return tuple(
            stored.kernels[number].source if edited else self.emit(number)
            for number, edited in enumerate(free)
        )

    def evaluate(self, source: str | None, schedule: str | None = None) -> Evaluated:
        """Builds, checks at all shapes and times: a source of the first kernel, or what is
        emitted for a schedule (the spec's own equations then, and one check shape)."""
        checks = self.workload.checks
        if schedule is None:
            first, record = self.stored.kernels[0], self.stored.record
            # Shapes are drawn for a record of an older version too.
            secret = record.secret or record.digests.source
            return self._evaluate(source, first.schedule, self._variant(0), checks, secret=secret)
        return self._evaluate(source, schedule, self._spec, checks[:1])

    def evaluate_all(self, sources: Sequence[str]) -> Evaluated:
        """All kernels: the first at all shapes, the others where the guards choose them. The
        times are those of the kernels that are chosen; a failure says of which kernel it is."""
        found = [self.evaluate(sources[0])]
        for number, text in list(enumerate(sources))[1:]:
            found.append(self._specialization(number, text))
        for number, one in enumerate(found):
            if isinstance(one, Failure):
                return replace(one, reason=f"kernel {number}: {one.reason}") if number else one
        return self._together([one for one in found if isinstance(one, Evaluation)])

    def dispatched(self, folder: Path) -> Dispatched:
        """The kernels as they are run, each built below a folder when it is first needed."""
        parts = [self._part(number) for number in range(len(self.stored.kernels))]
        record = self.stored.record
        return Dispatched(
            self.machine, self.backend, parts, record.guards, folder, record.within or WITHIN
        )

    @property
    def _spec(self) -> str:
        return spec_text(self.workload.spec)

    @property
    def shapes(self) -> tuple[WeightedShape, ...]:
        """The shapes that the record is tuned for."""
        tuned = self.stored.record.workload
        return tuple(WeightedShape(t.shape, t.weight) for t in tuned) or (
            WeightedShape(self.stored.record.shape),
        )

    def _variant(self, kernel: int) -> str:
        """The text of the equations that a kernel's schedule is for."""
        return self.stored.kernels[kernel].variant or self._spec

    def _part(self, kernel: int) -> Part:
        """A kernel, at the widest of the tuned shapes that it fits at."""
        texts = self.stored.kernels[kernel]
        spec = parse_spec(self._variant(kernel))
        schedule = parse_schedule(texts.schedule, numbered(SCHEDULE, kernel))
        fitting = [s for s in self.shapes if fits(spec, schedule, self.machine, s.sizes)]
        sizes = widest(spec, self.machine, fitting or self.shapes)
        return Part(spec, schedule, texts.source, sizes)

    def _specialization(self, number: int, source: str) -> Evaluated:
        """A kernel that is not the first, where it is run."""
        record, texts = self.stored.record, self.stored.kernels[number]
        spec, machine = self.workload.spec, self.machine
        correct_by = self.can["correct_by"]
        where = shapes_of(
            number,
            self.dispatched(Path()).chosen,
            record.within or WITHIN,
            self.workload.checks,
            [tuned.shape for tuned in record.workload],
            lambda sizes: affordable(spec, machine, sizes, correct_by),
        )
        shapes = tuple(
            WeightedShape(t.shape, t.weight) for t in record.workload if t.kernel == number
        )
        if not where or not shapes:
            return Failure("check", "refused", "it is run at no shape where it can be checked")
        return self._evaluate(source, texts.schedule, self._variant(number), where, shapes)

    def _together(self, found: Sequence[Evaluation]) -> Evaluation:
        """What kernels that share shapes come to."""
        first, tuned = found[0], self.stored.record.workload
        errors = tuple(error for one in found for error in one.errors)
        if not tuned:
            return replace(first, errors=errors)
        times = []
        for one in tuned:
            evaluation = found[one.kernel]
            there = evaluation.at(one.shape) or evaluation  # which was timed at one shape only
            times.append(Timed(dict(one.shape), one.weight, there.us))
        us = mean([t.us for t in times], self.shapes)
        return replace(first, us=us, errors=errors, times=tuple(times))

    def _evaluate(
        self,
        source: str | None,
        schedule: str,
        variant: str,
        checks: tuple[Sizes, ...],
        shapes: tuple[WeightedShape, ...] = (),
        secret: str = "",
    ) -> Evaluated:
        record, shapes = self.stored.record, shapes or self.shapes
        bench = Bench(
            spec=self._spec,
            machine=self.machine,
            open=partial(backend_for, self.machine, record.backend),
            sizes=heaviest(shapes),
            checks=checks,
            workload=shapes if len(shapes) > 1 else (),
            secret=secret,
            rounded=record.rounded,
        )
        tried = Candidate(
            variant=variant,
            schedule=schedule,
            target=record.target,
            backend=record.backend,
            source=source,
        )
        return evaluated_alone(Stages.of(bench), tried)


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
    backend = backend_for(machine, stored.record.backend)
    return Reproduction(
        stored=stored,
        workload=parse_workload(stored.workload, SPEC),
        machine=served_by(machine, backend),
        backend=backend,
    )
