"""Which backend makes a kernel of a network, where several serve a chip.

The first backend of a target makes a network's kernels. Another one makes kernels of the kinds that its manifest
`prefers`, as they were measured faster (docs/benchmarks.md):

    recurrence   steps of a recurrence: in one cooperative launch, else the same schedule
    epilogue     one matmul whose short sums special functions follow: in bulk, in square tiles
    turns        one large matmul of a short sum, or of few wide tiles: in bulk, in square tiles by two groups of threads
    window       a convolution: its windows in bulk, where that takes much less time by the guess

A backend that a user names makes all kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backends.registry import REGISTRY, served_by
from backends.served import Served, require_parts
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.schedule import Schedule
from ir.spec import Spec

GAIN = 0.9  # the most that another backend's guess may be, as a fraction of the first backend's
# The same if the first backend gathers merged pixels: its guess is as low as 0.73 of the time
# model's figure for its build. Bulk-copied windows have no such gap.
OF_MERGED = 1.3


@dataclass(frozen=True, slots=True)
class Share:
    """A kernel's nest, and the backend that makes it."""

    served: Served
    nest: LoopNest


def others(machine: Machine, named: str | None = None) -> tuple[Served, ...]:
    """The backends of a target other than its first that make some kinds of kernels and can build
    here; none if the user named a backend."""
    names = [n for n in machine.backends[1:] if not named and REGISTRY.manifest(n).prefers]
    found = (Served(b, served_by(machine, b)) for b in map(REGISTRY.backend, names))
    return tuple(one for one in found if one.backend.available(one.machine).get("toolchain"))


def shared(first: Share, more: Sequence[Served]) -> Share:
    """The kernel with the backend that makes it: the first one, or one of the others."""
    return next((one for other in more for one in _made_by(other, first)), first)


def _made_by(other: Served, first: Share) -> Iterator[Share]:
    """The kernel made by another backend, if it is of a kind that this backend makes."""
    for kind in other.backend.manifest.prefers:
        if kind == "recurrence" and not any(launch.repeat for launch in first.nest.launches):
            continue
        spec, schedule = first.nest.spec, first.nest.schedule
        found = other.machine.model.seeds_like(kind, spec, other.machine, {}, schedule)
        made = [Share(other, nest) for s in found if (nest := _lowered(spec, s, other)) is not None]
        if kind == "window":
            most = OF_MERGED if schedule.of("flatten") else GAIN
            made = [one for one in made if _guess(one) <= most * _guess(first)]
        if made:  # the first one for steps, because the guess does not model what they wait for
            yield made[0] if kind == "recurrence" else min(made, key=_guess)


def _lowered(spec: Spec, schedule: Schedule, other: Served) -> LoopNest | None:
    try:
        require_parts(spec, other.machine)
        return lower(spec, schedule, other.machine, {})
    except KernelError:
        return None


def _guess(one: Share) -> float:
    """The guessed time in microseconds."""
    guess = getattr(one.served.backend, "guess", None)
    return guess(one.nest, one.served.machine, {}) if guess else 0.0
