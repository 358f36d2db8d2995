"""Matrix multiplication statements, and the base class of all statements."""

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
    """to[m, n] += sum over k of a[m, k] * b[k, n], for fragments with these axes in this order.

    With an instruction, a warp executes it for every multiple of its steps. Without one, each
    thread holds all of k for its own m and n, and uses fused multiply-adds. Fragments may have a
    leading batch axis, the same in all three and in registers only.
    """

    to: Name
    a: Name
    b: Name
    instruction: Instruction | None = None
    # Where a has more of k than b: the register along k at which the part for b begins.
    first: Expr | None = None
    # Block scales of a and b along k: fragments of (m, block) and (block, n).
    a_scale: Name | None = None
    b_scale: Name | None = None


@dataclass(frozen=True, slots=True)
class Interleave(Statement):
    """Hints the compiler to order instructions in the loop that ends here: `reads` shared memory
    reads, then `matrix` matrix instructions, repeatedly. It has no other effect."""

    reads: int
    matrix: int


@dataclass(frozen=True, slots=True)
class WarpgroupMultiply(Statement):
    """to[m, n] += sum over k of a[m, k] * b[k, n], by a warpgroup, over all of K (wgmma).

    b, and a unless it is a fragment, are panelled tiles of shared memory, which the instruction
    reads through the async proxy: after stores by threads it needs a `Barrier` for that proxy. When
    the next statement begins, at most `pending` multiplies are in flight, including this one. They
    still read their tiles, and `to` must not be accessed before `WarpgroupWait`.
    """

    to: Name
    a: Name  # a tile, or a fragment in the instruction's layout
    b: Name  # a tile
    instruction: Instruction
    shape: tuple[int, int, int]  # M, N and K of one issue
    a_stage: Expr | None = None
    b_stage: Expr | None = None
    pending: int = 0


@dataclass(frozen=True, slots=True)
class WarpgroupWait(Statement):
    """Waits until at most `pending` multiplies of a warpgroup are in flight. Then `name`, the
    result of a completed one, can be read."""

    name: Name
    pending: int = 0
    # A fragment that is computed before the wait, while multiplies are in flight, wherever the
    # compiler would otherwise place the wait.
    after: Name | None = None


@dataclass(frozen=True, slots=True)
class TensorMultiply(Statement):
    """to[m, n] += sum over k of a[m, k] * b[k, n] in tensor memory, over all of K, where `onto`
    holds; else to[m, n] = the sum.

    a, b: panelled tiles of shared memory, as for `WarpgroupMultiply`. One warp of each warpgroup
    issues it for the warpgroup's rows and columns, and its completion arrives at a stage of the
    signal. When the next statement begins, at most `pending` multiplies are in flight, including
    this one; they still read their tiles.
    """

    to: Name  # an accumulator
    a: Name
    b: Name
    instruction: Instruction
    shape: tuple[int, int, int]  # M, N and K of one issue
    onto: Expr
    signal: Name  # with twice as many stages as may be in flight, rounded to a power of two
    number: Expr  # of this multiply; the first has twice the number of stages
    a_stage: Expr | None = None
    b_stage: Expr | None = None
    pending: int = 0


@dataclass(frozen=True, slots=True)
class TensorLoad(Statement):
    """Waits until no multiply in tensor memory is in flight; then fragment = accumulator. A barrier
    must precede the next write to the accumulator."""

    name: Name
    source: Name  # an accumulator
    signal: Name
    number: Expr  # of the latest multiply
