"""Decisions of a schedule on matmuls, which override the choices of the thread program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from backends.backend import BackendError
from ir.lower.matmuls import shape_word
from ir.nest.nest import Dot, Launch
from machines.gpu.matrix_instructions import MatrixInstruction


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions on one matmul; None: the thread program chooses."""

    shape: tuple[int, int, int] | None = None  # M, N and K of the instruction
    warps: tuple[int, int] | None = None  # number of partitions of M and of N
    overlaps: bool = False  # whether it runs one iteration after its operand is computed
    ahead: bool = False  # whether also the matmul before it runs one iteration ahead

    def rows(self, table: Sequence[MatrixInstruction]) -> Sequence[MatrixInstruction]:
        """The instructions that the decisions allow."""
        if self.shape is None:
            return table
        m, n, k = self.shape
        return [row for row in table if (row.m, row.k) == (m, k) and n in row.sizes_n]

    def require(self, found: bool, name: str, dtype: str) -> None:
        """Raises BackendError where the decisions leave no way to multiply. found: whether there is one."""
        if found or self.shape is self.warps is None:
            return
        shape = f" by {shape_word(self.shape)}" if self.shape else ""
        parts = " by warps in {} x {} parts".format(*self.warps) if self.warps else ""
        raise BackendError(
            "emit",
            f"`{name}` is not multiplied in {dtype}{shape}{parts}: it has a batch or too few rows or "
            "columns, or this language has no such instruction",
        )


NONE: Mapping[str, Decided] = MappingProxyType({})


def decided(launch: Launch) -> Mapping[str, Decided]:
    """The decisions on the matmuls of a launch, by the value that holds the result."""
    dots = (s for s in launch.statements() if isinstance(s, Dot))
    own = {s.value: Decided(s.instruction, s.warps, s.overlaps, s.ahead) for s in dots}
    return {name: one for name, one in own.items() if one != Decided()}
