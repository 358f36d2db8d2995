"""A cache of autoschedules, because operators ask for the same one repeatedly."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import Sizes

KEPT = 512  # variants; schedules are small


@dataclass(frozen=True, slots=True)
class _Case:
    """The input of an autoschedule."""

    spec: Spec
    chip: str  # the machine as text, by which it is compared
    at: tuple[tuple[str, int], ...]
    machine: Machine = field(compare=False)
    sizes: Sizes = field(compare=False)


def scheduled(spec: Spec, machine: Machine, sizes: Sizes) -> Schedule:
    """The same as `ir.autoschedule`, cached. Raises KernelError if the spec does not lower at
    all."""
    found = _found(_Case(spec, repr(machine), tuple(sizes.items()), machine, sizes))
    if isinstance(found, KernelError):
        raise found
    return found


@lru_cache(maxsize=KEPT)
def _found(case: _Case) -> Schedule | KernelError:
    try:
        return autoschedule(case.spec, case.machine, case.sizes)
    except KernelError as error:
        return error
