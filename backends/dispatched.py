"""A dispatched kernel: several kernels for one spec; guards on the sizes choose the one that runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from backends.backend import Arrays, Backend, Built, Sizes, Timing
from ir.guards import WITHIN, Guard, chosen
from ir.lower.lower import fits, lower
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.schedule import Schedule
from ir.spec import Spec


@dataclass(frozen=True, slots=True)
class Part:
    """One of the kernels."""

    variant: Spec  # equivalent to the spec
    schedule: Schedule
    source: str
    sizes: Sizes  # the sizes that it is tuned for, for which it fits the machine


class Dispatched:
    """Runs the kernel that the guards choose. Each kernel is built below `folder` on first use.

    parts: the fallback first, in the guards' numbering.
    within: see `ir.guards.chosen`.
    """

    def __init__(
        self,
        machine: Machine,
        backend: Backend,
        parts: Sequence[Part],
        guards: Sequence[Guard],
        folder: Path,
        within: float = WITHIN,
    ):
        self.machine = machine
        self.backend = backend
        self.parts = tuple(parts)
        self.guards = tuple(guards)
        self.within = within
        self.folder = folder
        self._built: dict[int, tuple[LoopNest, Built]] = {}
        self._chosen: dict[tuple[tuple[str, int], ...], int] = {}

    def chosen(self, sizes: Sizes) -> int:
        """The number of the kernel that runs at some sizes. KernelError if none fits."""
        key = tuple(sorted(sizes.items()))
        if key not in self._chosen:
            found = chosen(self.guards, sizes, lambda n: self._fits(n, sizes), self.within)
            self._chosen[key] = found
        return self._chosen[key]

    def run(self, sizes: Sizes, inputs: Arrays) -> dict[str, np.ndarray]:
        """The outputs. BackendError if the kernel does not build or run."""
        nest, built = self._kernel(self.chosen(sizes))
        return self.backend.run(built, nest, self.machine, sizes, inputs)

    def time(self, sizes: Sizes, inputs: Arrays) -> Timing:
        """The time of the kernel that runs."""
        nest, built = self._kernel(self.chosen(sizes))
        return self.backend.time(built, nest, self.machine, sizes, inputs)

    def _fits(self, number: int, sizes: Sizes) -> bool:
        part = self.parts[number]
        return fits(part.variant, part.schedule, self.machine, sizes)

    def _kernel(self, number: int) -> tuple[LoopNest, Built]:
        if number not in self._built:
            part = self.parts[number]
            nest = lower(part.variant, part.schedule, self.machine, part.sizes)
            place = self.folder / f"kernel_{number}"
            place.mkdir(parents=True, exist_ok=True)
            built = self.backend.build(part.source, nest, self.machine, place)
            self._built[number] = nest, built
        return self._built[number]
