"""Statements that multiply matrices, and what all statements are."""

from __future__ import annotations

from dataclasses import dataclass

from backends.gpu.threads.fragments import Instruction
from backends.gpu.tile import Name
from ir.spec import Expr


@dataclass(frozen=True, slots=True)
class Statement:
    """One step of all threads of a block."""


@dataclass(frozen=True, slots=True)
class Multiply(Statement):
    """to[m, n] += sum over k of a[m, k] * b[k, n], of fragments with these axes in this order.

    With an instruction, a warp does it together, for every multiple of its steps. Without
    one, each thread holds all of k for its own m and n, and uses fused multiply-adds. Fragments may
    have one more axis in front, the same in all three and in registers alone: a batch.
    """

    to: Name
    a: Name
    b: Name
    instruction: Instruction | None = None
    # Where a has more of k than b: the register along k at which the part of b begins.
    first: Expr | None = None
    # Of blocks of a and b along k, which are multiplied by them: fragments of m, block and of block, n.
    a_scale: Name | None = None
    b_scale: Name | None = None


@dataclass(frozen=True, slots=True)
class Interleave(Statement):
    """Tells the compiler the order of instructions in the loop that ends here: `reads` times a read of
    shared memory, then `matrix` matrix instructions. Nothing else changes."""

    reads: int
    matrix: int


@dataclass(frozen=True, slots=True)
class WarpgroupMultiply(Statement):
    """to[m, n] += sum over k of a[m, k] * b[k, n], by four warps together, over all of K.

    b, and a where it is no fragment, are tiles of shared memory in panels, which the instruction
    reads past the registers: what threads stored there needs a `Barrier` for the asynchronous proxy.
    When the next statement begins, at most `pending` of them are in flight, this one among them: they
    still read their tiles, and `to` is not to be touched before `WarpgroupWait`.
    """

    to: Name
    a: Name  # a tile, or a fragment as the instruction takes it
    b: Name  # a tile
    instruction: Instruction
    shape: tuple[int, int, int]  # M, N and K of one issue
    a_stage: Expr | None = None
    b_stage: Expr | None = None
    pending: int = 0


@dataclass(frozen=True, slots=True)
class WarpgroupWait(Statement):
    """Waits until at most `pending` matmuls of a warpgroup are in flight; then `name`, the result of one
    that is over, can be read."""

    name: Name
    pending: int = 0
    # A fragment: what is computed for it is computed while they are in flight, wherever the compiler would
    # put the wait.
    after: Name | None = None


@dataclass(frozen=True, slots=True)
class TensorMultiply(Statement):
    """to[m, n] += sum over k of a[m, k] * b[k, n] in tensor memory, over all of K, where `onto` holds;
    else to[m, n] = the sum.

    a, b: tiles of shared memory in panels, as of `WarpgroupMultiply`. One warp of each four issues it
    for the rows and columns of these, and the number of it arrives at a stage of the signal when it is
    over. When the next statement begins, at most `pending` of them are in flight, this one among them:
    they still read their tiles.
    """

    to: Name  # an accumulator
    a: Name
    b: Name
    instruction: Instruction
    shape: tuple[int, int, int]  # M, N and K of one issue
    onto: Expr
    signal: Name  # with a stage for each that may be in flight, a power of two, twice
    number: Expr  # of this one; the first has twice the number of stages
    a_stage: Expr | None = None
    b_stage: Expr | None = None
    pending: int = 0


@dataclass(frozen=True, slots=True)
class TensorLoad(Statement):
    """Waits until no matmul in tensor memory is in flight; then a fragment = an accumulator. A barrier
    has to come before the accumulator is written again."""

    name: Name
    source: Name  # an accumulator
    signal: Name
    number: Expr  # of the latest matmul
