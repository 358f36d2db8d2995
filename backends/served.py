"""A target as one of its backends serves it."""

from __future__ import annotations

from dataclasses import dataclass

from backends.backend import Backend
from ir.errors import KernelError
from ir.machine import Machine
from ir.spec import Spec


@dataclass(frozen=True, slots=True)
class Served:
    """A backend, and the target with that backend's rendering of schedules."""

    backend: Backend
    machine: Machine

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.backend.manifest.name


def require_parts(spec: Spec, machine: Machine) -> None:
    """Raises KernelError if a spec has outputs that are parts of larger tensors, and the backend
    that serves the machine refuses them."""
    if machine.rendering.parts:
        return
    for t in spec.outputs:
        if t.part is not None:
            raise KernelError(
                f"`{t.name}` is a part of a larger tensor, which backend `{machine.rendering.backend}` of "
                f"`{machine.name}` does not store",
                allowed="outputs that are tensors of their own",
            )
