"""A cache of the last simulations. Simulations are deterministic, so none is repeated."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backends.backend import Arrays, Built, Sizes
from ir.machine import Machine

# Simulations: enough for all checks of a candidate at all sizes, so that its time, which is needed
# last, is among them.
KEPT = 64


@dataclass(frozen=True, slots=True)
class Run:
    """The key of a simulation. built: compared by identity, because a path may be built again.
    inputs: their digest."""

    built: Built
    machine: Machine
    sizes: Sizes
    inputs: str

    def same(self, other: Run) -> bool:
        """Whether both give the same result."""
        mine = (self.machine, dict(self.sizes), self.inputs)
        return self.built is other.built and mine == (
            other.machine,
            dict(other.sizes),
            other.inputs,
        )


class Remembered:
    """The results of the last simulations; the oldest is dropped first."""

    def __init__(self) -> None:
        self._runs: deque[tuple[Run, Mapping[str, Any]]] = deque(maxlen=KEPT)

    def add(self, run: Run, result: Mapping[str, Any]) -> None:
        """Adds the result of a simulation."""
        self._runs.append((run, result))

    def find(self, run: Run) -> Mapping[str, Any] | None:
        """The result of a simulation; None if it is not in the cache."""
        return next((result for known, result in self._runs if known.same(run)), None)


def inputs_digest(inputs: Arrays, names: tuple[str, ...]) -> str:
    """A digest of the named inputs: their names, dtypes, shapes and values."""
    digest = hashlib.sha256()
    for name in names:
        array = inputs[name]
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
