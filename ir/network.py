"""A network: specs that run one after the other over buffers.

It is what a model becomes: each step is a kernel's spec, and says which buffer holds which of its
tensors. Sizes are numbers. A buffer's elements lie in row-major order; a step may see them under
another shape. Where a model has a call that no kernel does, the network pauses for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ir.spec import Spec

ROLES = ("input", "output", "between", "outside")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that steps read and write. role: who fills it, of ROLES: the caller (`input`), a step,
    or a call that no kernel does (`outside`)."""

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
class Outside:
    """A call of a model that no kernel does: whoever runs the network makes it.

    name: what is called, for a reader.  inputs: outputs of the model's spec, that it is given.
    outputs: inputs of the spec, that it fills; None for a result that nothing reads.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Where a network waits for a call from outside. before: the number of steps that are run by
    then.  inputs: buffers, and the shapes under which they are given.  outputs: buffers that it
    fills, None for a result that nothing reads."""

    name: str
    before: int
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """Steps over buffers. outputs: buffers and the shapes under which they are given back.
    pauses: in the order of the calls in the model, none earlier than one that it needs."""

    name: str
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    pauses: tuple[Pause, ...] = ()

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

    def sequence(self) -> Iterator[tuple[int, Step | Pause]]:
        """All that is run, in order: steps and pauses, each with its number among its like."""
        for n in range(len(self.steps) + 1):
            yield from ((m, p) for m, p in enumerate(self.pauses) if p.before == n)
            if n < len(self.steps):
                yield n, self.steps[n]

    def kernels(self) -> tuple[Spec, ...]:
        """The specs, each once: equal steps share a kernel."""
        return tuple(dict.fromkeys(s.spec for s in self.steps))
