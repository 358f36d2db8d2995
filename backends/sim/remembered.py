"""What the last simulations came to: one is the same each time, so none is made twice."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backends.backend import Arrays, Built, Sizes
from ir.machine import Machine

# Simulations: all that the checks of a candidate make at all sizes, so that its time, which is asked
# for last, is among them.
KEPT = 64


@dataclass(frozen=True, slots=True)
class Run:
    """A simulation that could be made. built: as an object, not as a path that is built again.

    inputs: their digest.
    """

    built: Built
    machine: Machine
    sizes: Sizes
    inputs: str

    def same(self, other: Run) -> bool:
        """Whether the two come to the same."""
        mine = (self.machine, dict(self.sizes), self.inputs)
        return self.built is other.built and mine == (
            other.machine,
            dict(other.sizes),
            other.inputs,
        )


class Remembered:
    """The results of the last simulations, the oldest forgotten first."""

    def __init__(self) -> None:
        self._runs: deque[tuple[Run, Mapping[str, Any]]] = deque(maxlen=KEPT)

    def add(self, run: Run, result: Mapping[str, Any]) -> None:
        """Keeps what a simulation came to."""
        self._runs.append((run, result))

    def find(self, run: Run) -> Mapping[str, Any] | None:
        """What a simulation came to; None where it was not made, or long ago."""
        return next((result for known, result in self._runs if known.same(run)), None)


def inputs_digest(inputs: Arrays, names: tuple[str, ...]) -> str:
    """A digest of the named inputs: their names, forms and values."""
    digest = hashlib.sha256()
    for name in names:
        array = inputs[name]
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
