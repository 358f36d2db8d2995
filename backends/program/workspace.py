"""A workspace: one allocation for tensors with different lifetimes.

A tensor lives from the step that writes it to the last step that reads it. Tensors whose lifetimes
overlap do not share bytes; others may. The largest tensors are placed first, each at the lowest
offset that is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 256  # bytes: the alignment of an allocator, which kernels are built for


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tensor's size and lifetime."""

    name: str
    bytes: int
    # The first and the last step of its lifetime, both included.
    first: int
    last: int

    def meets(self, other: Allocation) -> bool:
        """Whether the lifetimes of both overlap."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """Where the tensors of a workspace are placed."""

    offsets: Mapping[str, int]  # in bytes, by name
    bytes: int  # size of the workspace


def plan(blocks: Sequence[Allocation]) -> WorkspacePlan:
    """The offsets of tensors, multiples of ALIGNMENT."""
    placed: list[tuple[int, Allocation]] = []
    for block in sorted(blocks, key=lambda b: (-b.bytes, b.first, b.name)):
        placed.append((_lowest(block, placed), block))
    whole = max((_aligned(at + block.bytes) for at, block in placed), default=0)
    return WorkspacePlan({block.name: at for at, block in placed}, whole)


def _lowest(block: Allocation, placed: Sequence[tuple[int, Allocation]]) -> int:
    """The lowest offset at which a tensor overlaps no placed tensor whose lifetime meets its own."""
    at = 0
    taken = sorted((low, low + b.bytes) for low, b in placed if b.meets(block) and b.bytes)
    for low, high in taken:
        if at + block.bytes <= low:
            break
        at = max(at, _aligned(high))
    return at


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
