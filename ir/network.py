"""A network: specs that run one after another over buffers. A model becomes one.

Each step is a kernel's spec with the buffers of its tensors. Sizes are numbers. A buffer is
row-major. A step can view it in another shape, and several steps can each store a part of it
(`ir.spec.Part`). If a model makes a call that no kernel computes, the network pauses for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ir.spec import Spec

ROLES = ("input", "output", "between", "outside")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that steps read and write."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str  # what writes it: the caller (`input`), a step, or an outside call (`outside`)


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a network."""

    spec: Spec
    inputs: tuple[str, ...]  # the buffers of the spec's inputs, in its order
    outputs: tuple[str, ...]  # likewise of its outputs


@dataclass(frozen=True, slots=True)
class Outside:
    """A call of a model that no kernel computes; whoever runs the network makes it."""

    name: str  # what is called, for messages
    inputs: tuple[str, ...]  # outputs of the model's spec that it receives
    # Inputs of that spec that it writes; None for a result that nothing reads.
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Where a network waits for an outside call."""

    name: str
    before: int  # number of steps that run before it
    # Buffers, with the shapes in which it receives them.
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[str | None, ...]  # buffers that it writes; None for a result that nothing reads


@dataclass(frozen=True, slots=True)
class Network:
    """Steps over buffers."""

    name: str
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    # Buffers, with the shapes in which they are returned.
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    # In the model's order of calls; none comes before one that it needs.
    pauses: tuple[Pause, ...] = ()

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The buffers that the caller writes, in order."""
        return tuple(b for b in self.buffers if b.role == "input")

    def buffer(self, name: str) -> Buffer:
        """The buffer with a name. Raises KeyError if there is none."""
        for b in self.buffers:
            if b.name == name:
                return b
        raise KeyError(name)

    def sequence(self) -> Iterator[tuple[int, Step | Pause]]:
        """Steps and pauses in the order in which they run, each with its number among its kind."""
        for n in range(len(self.steps) + 1):
            yield from ((m, p) for m, p in enumerate(self.pauses) if p.before == n)
            if n < len(self.steps):
                yield n, self.steps[n]

    def kernels(self) -> tuple[Spec, ...]:
        """The distinct specs; equal steps share a kernel."""
        return tuple(dict.fromkeys(s.spec for s in self.steps))
