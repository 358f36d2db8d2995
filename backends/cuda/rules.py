"""What CUDA C++ requires of tile programs, and which names it reserves."""

from backends.cuda.admission import ADMISSION
from backends.gpu.rules import Rules

RULES = Rules(
    least_side=16,
    least_depth=32,
    unrolled=8,
    box_aligned=16,
    box_most=256,
    repeated=frozenset(),
    typed=frozenset(),
    typed_but_f32=frozenset(),
    warps=4,
    box_steps=8,
    shares=True,
    cooperative=True,
    clusters=True,
    sums=frozenset(("f32", "i32")),
)
WORDS = ADMISSION.called | frozenset(  # names of kernel.h and of the compiler
    """
    threadIdx blockIdx blockDim gridDim warpSize dim3 NULL INFINITY NAN assert clock printf malloc
    free memcpy memset uint2 uint4 float2 float4 ptx TensorMap
    """.split()
)
