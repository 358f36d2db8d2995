"""Our entrant in a race: a spec with a schedule, emitted, built, and called on torch tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor
from triton import knobs

from backends.backend import Backend
from backends.triton.build.compile import CACHE
from backends.triton.build.module import load
from backends.triton.signature import parameters
from benchmarks.inputs import poisoned
from benchmarks.shapes import Row
from benchmarks.variants import schedule_with_dtype
from ir.autoschedule.autoschedule import autoschedule
from ir.digest import text_digest
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.parse.parse import parse_schedule
from ir.schedule import Schedule
from ir.sizes import bind, value
from ir.spec import Spec

ROOT = Path(__file__).parent.parent
SCHEDULES = "benchmarks/schedules"
RECORDS = "kernels_generated"
_EVALUATIONS = re.compile(r"^#\s*evaluations:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule and its origin: a path from the root, or `autoschedule`."""

    schedule: Schedule
    origin: str
    # Number of evaluations of the search that found it, from a line `# evaluations: N` of the file.
    evaluations: int
    nest: LoopNest


@dataclass(frozen=True, slots=True)
class Entrant:
    """A built kernel."""

    choice: Choice
    source: str
    file: Path  # The file of its source as it was built.
    figures: Mapping[str, float]  # Figures of the build.

    @property
    def digest(self) -> str:
        """The digest of the emitted source."""
        return text_digest(self.source)

    @property
    def names(self) -> frozenset[str]:
        """The names of kernels that may run on the device during a call."""
        return frozenset(launch.name for launch in self.choice.nest.launches)

    @contextmanager
    def as_built(self) -> Iterator[None]:
        """Makes the first call find the compiled code of the build, inside the context."""
        with knobs.cache.scope():
            knobs.cache.dir = str(self.file.parent / CACHE)
            yield

    def bind(self, sizes: Mapping[str, int], device: str) -> tuple[Any, Sequence[Tensor]]:
        """Returns a call that takes only the inputs, and the outputs that it writes. Outputs and
        workspace are poisoned.

        It loads the emitted module, whose `launch` takes all of them.
        """
        bound = bind(self.choice.nest.spec, sizes)
        made = {
            p.role + p.name: poisoned(p.dtype, tuple(value(e, bound) for e in p.shape), device)
            for p in parameters(self.choice.nest)
            if p.role != "input"
        }
        outputs = [t for key, t in made.items() if key.startswith("output")]
        return partial(_call, _launch(self.file), tuple(made.values())), outputs


def choose(
    row: Row, spec: Spec, machine: Machine, root: Path = ROOT, schedules: str = ""
) -> Choice:
    """Chooses the schedule of a row: its own file, else the kernel's record if that lowers at the
    row's sizes and dtype, else the autoschedule.

    schedules: the target of these files and records. Empty: the machine itself.

    Raises KernelError if a row's own file is wrong.
    """
    folder = schedules or machine.name
    own = Path(SCHEDULES) / folder / f"{row.key}.sched"
    if (root / own).is_file():
        text = (root / own).read_text(encoding="utf-8")
        return _choice(parse_schedule(text, str(own)), str(own), text, spec, machine, row)
    record = Path(RECORDS) / row.kernel / folder / "schedule.sched"
    if (root / record).is_file():
        text = (root / record).read_text(encoding="utf-8")
        try:
            schedule = schedule_with_dtype(parse_schedule(text, str(record)), row.dtype)
            return _choice(schedule, str(record), text, spec, machine, row)
        except KernelError:
            pass  # It was tuned for other sizes.
    schedule = autoschedule(spec, machine, row.sizes)
    return _choice(schedule, "autoschedule", "", spec, machine, row)


def enter(choice: Choice, backend: Backend, machine: Machine, folder: Path) -> Entrant:
    """Emits and builds a choice under a folder. Raises BackendError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    source = backend.emit(choice.nest, machine)
    built = backend.build(source, choice.nest, machine, folder)
    return Entrant(choice, source, built.file, dict(built.figures))


def _choice(
    schedule: Schedule, origin: str, text: str, spec: Spec, machine: Machine, row: Row
) -> Choice:
    found = _EVALUATIONS.search(text)
    nest = lower(spec, schedule, machine, row.sizes)
    return Choice(schedule, origin, int(found[1]) if found else 0, nest)


@cache
def _launch(file: Path) -> Any:
    """Returns the `launch` of an emitted file. It is loaded once, because a new module compiles
    again."""
    return load(file, "build").launch


def _call(launch: Any, rest: tuple[Tensor, ...], *inputs: Tensor) -> None:
    launch(*inputs, *rest)
