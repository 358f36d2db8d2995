"""An evaluator that asks a backend's time model alone: nothing is built, run or checked.

It compares searches where no device is, at milliseconds a candidate. What is lowered from a schedule
is the subject of other tests; here only its modelled time counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from backends.backend import Backend, BackendError, ModelsTime
from ir.errors import KernelError
from ir.estimate.kernel_features import kernel_features
from ir.lower.lower import lower
from ir.machine import Machine
from ir.workload import Sizes
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.lowered import schedule_of, spec_of

UNCHECKED = "unchecked"  # what rows say, in place of who found a result correct
FORMAL = "interpreter"  # what an `Evaluation` must say; no interpreter is asked


class TimeModel:
    """Evaluates candidates that are schedules by the modelled time of their nest."""

    def __init__(self, backend: Backend, machine: Machine, sizes: Sizes):
        if not isinstance(backend, ModelsTime):
            name = backend.manifest.name
            raise KernelError(
                f"backend `{name}` of `{machine.name}` has no time model",
                where="--modelled",
                allowed="targets whose first backend models times",
            )
        self.backend, self.machine, self.sizes = backend, machine, sizes
        self.contexts: Mapping[str, str] = {backend.manifest.name: f"time model of {machine.name}"}
        self.environment: Mapping[str, Any] = {"contexts": self.contexts}

    def close(self) -> None:
        """Nothing is held."""

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """(position, outcome) of each, in order."""
        for position, candidate in enumerate(candidates):
            yield position, self._outcome(candidate)

    def _outcome(self, candidate: Candidate) -> Evaluated:
        try:
            spec, schedule = spec_of(candidate.variant), schedule_of(candidate.schedule)
            nest = lower(spec, schedule, self.machine, self.sizes)
        except KernelError as error:
            return Failure("verify", "refused", str(error))
        try:
            self.backend.emit(nest, self.machine)  # refuses what its language does not have
            timing = cast(ModelsTime, self.backend).model(nest, self.machine, self.sizes, {})
        except BackendError as error:
            return Failure("emit", "refused", error.reason)
        figures = {**kernel_features(nest, self.machine, self.sizes), **timing.figures}
        return Evaluation(timing.us, "modelled", FORMAL, figures=figures, engines=timing.engines)
