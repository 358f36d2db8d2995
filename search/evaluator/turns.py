"""Turns of candidates, where their backend takes none itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backends.backend import Arrays, Backend, Built, Sizes
from backends.measure import leaves_inputs
from backends.turns import Turns
from ir.machine import Machine
from ir.nest.nest import LoopNest
from search import evaluator


def machine_turns() -> Turns:
    """Turns of all processes of this user on the devices of this machine. The locks are on files of
    ours: on a device's own a backend may have a lock too."""
    return Turns(__file__, evaluator.__file__)


def turns_of(can: Mapping[str, Any]) -> Turns:
    """Turns where what others do on the device disturbs a measured time, and the backend takes none
    itself, which would be shorter."""
    measured = can["time_kind"] == "measured" and not can.get("own_turns")
    return machine_turns() if measured else Turns()


@dataclass(frozen=True, slots=True)
class ByTurns:
    """A backend whose runs are turns together with others; comparing their results is none."""

    backend: Backend
    turns: Turns

    def leaves_inputs(self, machine: Machine) -> bool:
        """As the backend's own."""
        return leaves_inputs(self.backend, machine)

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """As the backend's own."""
        with self.turns.together():
            return self.backend.run(built, nest, machine, sizes, inputs)
