"""Rules: what a language asks of tile programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits and habits of one language."""

    least_side: int  # elements of a matmul operand along M, N and K
    least_depth: int  # the same along K for operands of 8 bits
    unrolled: int  # steps of a loop of scalars up to which it is unrolled
    box_aligned: int  # bytes that rows and addresses of tensors in boxes are multiples of
    box_most: int  # elements of a box along one dimension
    repeated: frozenset[str]  # functions whose spelling reads an argument more than once
    # Functions that take no bare constants and sizes, and those that take them in f32 only.
    typed: frozenset[str]
    typed_but_f32: frozenset[str]
    warps: int  # of a thread block where the schedule says nothing
    # Whether the compiler takes the loop over the tiles of a persistent block and those in it as one
    # loop, which it pipelines as the launch says; else each has stages of its own.
    persistent_is_one_loop: bool = False
    unrolled_divisions: int = 0  # the same of a loop that divides its index
    flat_sums: bool = False  # whether sums of matmuls are matrices in their loops
    box_dimensions: int = 0  # that a box has at most, as the machine says; 0: any number
    box_steps: int = 1  # how far apart positions of a box may be along a dimension
    # Dtypes in which matmuls are summed.
    sums: frozenset[str] = frozenset({"f32"})
    shares: bool = False  # whether thread blocks hand parts of sums to each other in memory
    cooperative: bool = False  # whether thread blocks meet in a launch, all of which run at once
    scaled_depth: int = 0  # elements along K of a matmul with scales of blocks
    # Whether the compiler holds the address of each element where the result of a matmul is stored along several
    # indices of one side, as pixels of several rows, and some of them may be out of bounds.
    holds_addresses: bool = False
    clusters: bool = False  # whether thread blocks of a cluster reach each other's shared memory
    # Whether operand B of a matmul, of elements of 4 bytes, is brought into another order through registers where
    # what is summed does not come last in it; operand A lies in registers anyway. On machines whose matrix unit reads
    # shared memory.
    k_last: bool = False
    # Whether tiles of windows that reach over no edge are computed without checks (`backends/gpu/interior.py`).
    interiors: bool = False
