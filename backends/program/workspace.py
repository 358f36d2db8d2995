"""A workspace: one allocation for tensors of which not all live at a time.

Each tensor lives from the step that writes it to the last that reads it. Two whose lives meet lie
apart; any others may share bytes. The largest are placed first, each as low as it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 256  # bytes: what an allocator gives, so that a kernel finds what it was built for


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tensor's bytes."""

    name: str
    bytes: int
    # `first` and `last`: the steps between which it lives, both included
    first: int
    last: int

    def meets(self, other: Allocation) -> bool:
        """Whether both live at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """Where blocks lie."""

    offsets: Mapping[str, int]  # in bytes, by name
    bytes: int  # of the whole


def plan(blocks: Sequence[Allocation]) -> WorkspacePlan:
    """The offsets of blocks, multiples of ALIGNMENT."""
    placed: list[tuple[int, Allocation]] = []
    for block in sorted(blocks, key=lambda b: (-b.bytes, b.first, b.name)):
        placed.append((_lowest(block, placed), block))
    whole = max((_aligned(at + block.bytes) for at, block in placed), default=0)
    return WorkspacePlan({block.name: at for at, block in placed}, whole)


def _lowest(block: Allocation, placed: Sequence[tuple[int, Allocation]]) -> int:
    """The lowest offset at which a block meets none that is placed."""
    at = 0
    taken = sorted((low, low + b.bytes) for low, b in placed if b.meets(block) and b.bytes)
    for low, high in taken:
        if at + block.bytes <= low:
            break
        at = max(at, _aligned(high))
    return at


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
