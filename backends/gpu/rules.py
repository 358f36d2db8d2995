"""Rules: a language's requirements on tile programs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits and conventions of one language."""

    least_side: int  # least elements of a matmul operand along M, N and K
    least_depth: int  # the same along K for 8-bit operands
    unrolled: int  # iterations up to which a scalar loop is unrolled
    box_aligned: int  # alignment in bytes of rows and addresses of tensors with boxes
    box_most: int  # most elements of a box along one dimension
    repeated: frozenset[str]  # functions whose source text reads an argument more than once
    # Functions that do not take untyped constants and sizes, and those that take them in f32 only.
    typed: frozenset[str]
    typed_but_f32: frozenset[str]
    warps: int  # of a thread block where the schedule does not decide
    # Whether the compiler fuses the loop over a persistent block's tiles with the loops in it into
    # one pipelined loop with the launch's stages; otherwise each loop has its own stages.
    persistent_is_one_loop: bool = False
    unrolled_divisions: int = 0  # the same for a loop that divides its index
    flat_sums: bool = False  # whether sums of matmuls are matrices in their loops
    box_dimensions: int = 0  # most dimensions of a box, as the machine says; 0: any number
    box_steps: int = 1  # largest stride of a box along a dimension
    # Whether the matrix unit reads a box in place only if its rows are one dimension, so that
    # neighbouring dimensions are merged where the box covers the inner ones.
    box_rows: bool = False
    # Accumulator dtypes of matmuls.
    sums: frozenset[str] = frozenset({"f32"})
    shares: bool = False  # whether thread blocks can exchange partial sums (stream-K)
    cooperative: bool = False  # whether thread blocks can have grid barriers (cooperative launch)
    scaled_depth: int = 0  # elements along K of a matmul with block scales
    # Whether the compiler holds the address of each element where a matmul result is stored along
    # several indices of M or N, such as pixels of several rows, with bounds checks.
    holds_addresses: bool = False
    # Whether contiguous axes of a tile are stored as one (`backends/gpu/joined.py`).
    joins_axes: bool = False
    clusters: bool = False  # whether thread blocks of a cluster access each other's shared memory
    # Whether 4-byte operands B go through registers where K is not last in memory; operand A is in
    # registers anyway. Applies to machines whose matrix unit reads shared memory.
    k_last: bool = False
    # Whether interior tiles of windows skip bounds checks (`backends/gpu/interior.py`).
    interiors: bool = False
