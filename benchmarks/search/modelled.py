"""An evaluator that only uses a backend's time model: nothing is built, run or checked.

It compares searches without a device, at milliseconds per candidate. Other tests check how a
schedule lowers; here only its modelled time counts.
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

UNCHECKED = "unchecked"  # In rows, in place of the check's method.
FORMAL = "interpreter"  # A value that `Evaluation` requires. No interpreter runs.


class TimeModel:
    """Evaluates schedules by the modelled time of their nest."""

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
        """Does nothing, because it holds no resources."""

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields (position, outcome) of each candidate, in order."""
        for position, candidate in enumerate(candidates):
            yield position, self._outcome(candidate)

    def _outcome(self, candidate: Candidate) -> Evaluated:
        try:
            spec, schedule = spec_of(candidate.variant), schedule_of(candidate.schedule)
            nest = lower(spec, schedule, self.machine, self.sizes)
        except KernelError as error:
            return Failure("verify", "refused", str(error))
        try:
            self.backend.emit(nest, self.machine)  # Rejects what its language does not support.
            timing = cast(ModelsTime, self.backend).model(nest, self.machine, self.sizes, {})
        except BackendError as error:
            return Failure("emit", "refused", error.reason)
        figures = {**kernel_features(nest, self.machine, self.sizes), **timing.figures}
        return Evaluation(timing.us, "modelled", FORMAL, figures=figures, engines=timing.engines)
