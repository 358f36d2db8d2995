"""Entrants that another machine built. The GPU's driver launches the very files of that build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from backends.backend import Built, Carries
from backends.gpu.cubins.backend import CubinBackend
from backends.gpu.cubins.build import launches
from backends.measure import check
from backends.parameters import parameters
from backends.registry import backend
from benchmarks.built import BuiltFolder
from benchmarks.candidates import Candidate
from benchmarks.entrant import ROOT, Choice, Entrant
from benchmarks.inputs import poisoned
from benchmarks.languages import lowered
from ir.errors import KernelError
from ir.machine import Machine
from ir.sizes import bind, value

SEED = 5  # Seed of the inputs at check sizes.


@dataclass(frozen=True, slots=True)
class Carried(Entrant):
    """A kernel from a folder of built kernels."""

    built: Built
    backend: str
    machine: Machine

    @property
    def names(self) -> frozenset[str]:
        """The names of kernels that may run on the device during a call."""
        groups = launches(self.file)["groups"]
        return frozenset(one["name"] for g in groups for one in g["launches"])

    @contextmanager
    def as_built(self) -> Iterator[None]:
        """Does nothing: a call compiles nothing anyway."""
        yield

    def bind(self, sizes: Mapping[str, int], device: str) -> tuple[Any, Sequence[Tensor]]:
        """Returns a call that takes only the inputs, and the outputs that it writes. Outputs and
        workspace are poisoned."""
        nest, bound = self.choice.nest, bind(self.choice.nest.spec, sizes)
        made = [
            (p.role, poisoned(p.dtype, tuple(value(e, bound) for e in p.shape), device))
            for p in parameters(nest)
            if p.role != "input"
        ]
        launch = self.serving.enqueued(self.built, nest, self.machine, sizes)
        outputs = [t for role, t in made if role == "output"]
        return partial(_call, launch, tuple(t for _, t in made)), outputs

    @property
    def serving(self) -> CubinBackend:
        """The backend that built it."""
        found = backend(self.backend)
        assert isinstance(found, CubinBackend)
        return found

    def require_right(self, candidate: Candidate) -> None:
        """Raises BackendError if its results are wrong at a check size."""
        work, nest = candidate.work(), self.choice.nest
        for sizes in work.checks:
            check(self.serving, self.built, nest, self.machine, work.spec, sizes, SEED)


def carried(candidate: Candidate, language: str, folder: BuiltFolder) -> Carried | str:
    """Returns the entrant of a candidate, or why there is none."""
    try:
        one = lowered(candidate, folder.target, language, folder.schedules)
        assert isinstance(one.serving, Carries)
        source = one.serving.emit(one.nest, one.machine)
        built = folder.built(candidate.name, language, source)
    except KernelError as error:
        return f"{type(error).__name__}: {error}"
    file = candidate.schedule(folder.schedules, language)
    choice = Choice(one.schedule, str(Path(file).relative_to(ROOT)), 0, one.nest)
    return Carried(choice, source, built.file, built.figures, built, language, one.machine)


def _call(launch: Any, rest: tuple[Tensor, ...], *inputs: Tensor) -> None:
    launch(*inputs, *rest)
