"""The stages of an evaluation: lower, emit, build, check, time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from backends.backend import Arrays, Backend, BackendError, Built, Timing
from backends.measure import OTHER, check, reference
from ir.cost import roofline
from ir.digest import text_digest
from ir.errors import KernelError
from ir.estimate import intensity
from ir.inputs import random_inputs
from ir.lower import lower
from ir.machine import Machine
from ir.nest import LoopNest
from ir.parse import parse_schedule, parse_spec
from ir.spec import Spec
from ir.workload import Sizes
from search.candidate import Candidate
from search.evaluation import Evaluated, Evaluation, Failure, ShapeError
from search.evaluator.sandbox import Limits

AFFORDABLE_FLOPS = 1 << 31  # a float64 reference of so many operations takes about a second
SEED = 20  # of inputs for checks: the same for all runs, so that what was found out is reusable


@dataclass(frozen=True, slots=True)
class Bench:
    """What candidates are tried on; plain data that travels to a worker.

    open: gives the backend, called once in each worker.  sizes: those that are timed.  checks:
    those at which results are compared, the first failure ends it.
    """

    spec: str
    machine: Machine
    open: Callable[[], Backend]
    sizes: Sizes
    checks: tuple[Sizes, ...] = ()
    seed: int = SEED
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Stages:
    """A bench set up in a process: everything that all candidates need was made once.

    shapes: at which results are compared; the tuning sizes are the last, where affordable.
    inputs: at the tuning sizes; never changed, as each child has its own copy.
    """

    bench: Bench
    backend: Backend
    spec: Spec
    shapes: tuple[Sizes, ...]
    inputs: Arrays
    least_bytes: float
    correct_by: str

    @staticmethod
    def of(bench: Bench) -> Stages:
        """Opens the backend and computes the references; KernelError where it cannot run here."""
        backend = bench.open()
        spec = parse_spec(bench.spec)
        can = backend.available(bench.machine)
        if not can.get("correct_by") or not can.get("time_kind"):
            raise KernelError(
                f"candidates for `{bench.machine.name}` cannot be evaluated here: "
                f"{can.get('why') or 'the backend does not say why'}",
                where=backend.manifest.name,
            )
        bound = roofline(spec, bench.machine, bench.sizes)
        tuned = (bench.sizes,) if bound.flops <= AFFORDABLE_FLOPS else ()
        shapes = (*(s for s in bench.checks if s != bench.sizes), *tuned)
        if not shapes:
            raise KernelError(
                f"`{spec.name}` has no sizes at which its results could be checked",
                hint="add a `check(...)` line with small sizes to its .kir file",
            )
        for sizes in shapes:
            reference(spec, sizes, bench.seed)
            reference(spec, sizes, bench.seed + OTHER)
        inputs = random_inputs(spec, bench.sizes, np.random.default_rng(bench.seed))
        return Stages(bench, backend, spec, shapes, inputs, float(bound.bytes), can["correct_by"])

    def evaluate(
        self, candidate: Candidate, folder: Path, enter: Callable[[str], None]
    ) -> Evaluated:
        """Takes a candidate through all stages. enter: is told each as it begins.

        The only place beside the sandbox where foreign code runs: whatever it raises becomes a
        Failure at the stage that was entered last.
        """
        stage = "verify"

        def begin(name: str) -> None:
            nonlocal stage
            stage = name
            enter(name)

        try:
            return self._evaluate(candidate, folder, begin)
        except KernelError as error:
            return Failure(stage, "refused", str(error))
        except BackendError as error:
            return Failure(error.stage, _kind(error.stage), error.reason)
        except MemoryError:
            return Failure(stage, "memory", "it asked for more memory than it may have")
        except Exception as error:  # foreign code: a fault there is data here
            return Failure(stage, "crash", f"{type(error).__name__}: {error}")

    def _evaluate(
        self, candidate: Candidate, folder: Path, begin: Callable[[str], None]
    ) -> Evaluation:
        machine, sizes = self.bench.machine, self.bench.sizes
        begin("verify")
        nest = self._lower(candidate)
        begin("emit")
        source = candidate.source
        if source is None:
            source = self.backend.emit(nest, machine)
        begin("build")
        built = self.backend.build(source, nest, machine, folder)
        begin("check")
        errors = tuple(self._check(built, nest, shape) for shape in self.shapes)
        begin("time")
        timing = self.backend.time(built, nest, machine, sizes, self.inputs)
        return Evaluation(
            us=timing.us,
            time_kind=timing.kind,
            correct_by=self.correct_by,
            errors=errors,
            figures=self._figures(nest, built, timing),
            engines=dict(timing.engines),
            source_digest=text_digest(source),
        )

    def _lower(self, candidate: Candidate) -> LoopNest:
        formulation = self.spec
        if candidate.formulation != self.bench.spec:
            formulation = parse_spec(candidate.formulation)
        schedule = parse_schedule(candidate.schedule)
        return lower(formulation, schedule, self.bench.machine, self.bench.sizes)

    def _check(self, built: Built, nest: LoopNest, sizes: Sizes) -> ShapeError:
        bench = self.bench
        found = check(
            self.backend,
            built,
            nest,
            bench.machine,
            self.spec,
            sizes,
            bench.seed,
            repeat=sizes == self.shapes[0],
        )
        return ShapeError(dict(sizes), found.rel_err, found.reference_rel_err)

    def _figures(self, nest: LoopNest, built: Built, timing: Timing) -> Mapping[str, float]:
        facts = intensity(nest, self.bench.machine, self.bench.sizes)
        facts["least_bytes"] = self.least_bytes
        return {**built.figures, **timing.figures, **facts}


def _kind(stage: str) -> str:
    return "wrong" if stage == "check" else "refused"
