"""A network: specs that run one after the other over buffers.

It is what a model becomes: each step is a kernel's spec, and says which buffer holds which of its
tensors. Sizes are numbers. A buffer's elements lie in row-major order; a step may see them under
another shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from ir.spec import Spec

ROLES = ("input", "output", "between")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that steps read and write. role: who fills it, of ROLES."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel. inputs, outputs: the buffers of the spec's, in its order."""

    spec: Spec
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """Steps over buffers. outputs: buffers and the shapes under which they are given back."""

    name: str
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers that the caller fills, in order."""
        return tuple(b for b in self.buffers if b.role == "input")

    def buffer(self, name: str) -> Buffer:
        """The buffer of a name; KeyError where there is none."""
        for b in self.buffers:
            if b.name == name:
                return b
        raise KeyError(name)

    def kernels(self) -> tuple[Spec, ...]:
        """The specs, each once: equal steps share a kernel."""
        return tuple(dict.fromkeys(s.spec for s in self.steps))
