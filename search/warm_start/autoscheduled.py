"""The autoschedule of a variant, found out once: operators ask for the same one again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import Sizes

KEPT = 512  # variants; a schedule is small


@dataclass(frozen=True, slots=True)
class _Case:
    """What a schedule follows from."""

    spec: Spec
    chip: str  # the machine in words, by which it is compared
    at: tuple[tuple[str, int], ...]
    machine: Machine = field(compare=False)
    sizes: Sizes = field(compare=False)


def scheduled(spec: Spec, machine: Machine, sizes: Sizes) -> Schedule:
    """As `ir.autoschedule`; KernelError where the spec cannot be lowered at all."""
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
