"""A target as one of its backends serves it."""

from __future__ import annotations

from dataclasses import dataclass

from backends.backend import Backend
from ir.machine import Machine


@dataclass(frozen=True, slots=True)
class Served:
    """A backend, with the target as it renders schedules for it."""

    backend: Backend
    machine: Machine

    @property
    def name(self) -> str:
        """The backend's."""
        return self.backend.manifest.name
