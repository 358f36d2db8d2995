"""Turns of candidates on a device, for backends that do not take turns themselves."""

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
    """Turns of all processes of this user on the devices of this machine.

    The locks are on our own files, because a backend may lock the device's file.
    """
    return Turns(__file__, evaluator.__file__)


def turns_of(can: Mapping[str, Any]) -> Turns:
    """Turns if other use of the device would disturb measured times, and the backend does not take
    its own, shorter turns."""
    measured = can["time_kind"] == "measured" and not can.get("own_turns")
    return machine_turns() if measured else Turns()


@dataclass(frozen=True, slots=True)
class ByTurns:
    """A backend whose runs take shared turns. Comparing results takes none."""

    backend: Backend
    turns: Turns

    def leaves_inputs(self, machine: Machine) -> bool:
        """The same as the backend's."""
        return leaves_inputs(self.backend, machine)

    def run(
        self, built: Built, nest: LoopNest, machine: Machine, sizes: Sizes, inputs: Arrays
    ) -> dict[str, np.ndarray]:
        """The same as the backend's, in a shared turn."""
        with self.turns.together():
            return self.backend.run(built, nest, machine, sizes, inputs)
