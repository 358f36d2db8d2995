"""The requirements of HIP C++ on tile programs and on names."""

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
    scaled_depth=128,
    sums=frozenset({"f32", "i32", "f64"}),
)
WORDS = frozenset(  # of the compiler and of HIP's header
    """
    threadIdx blockIdx blockDim gridDim warpSize dim3 NULL INFINITY NAN assert clock printf malloc
    free memcpy memset uint2 uint4 float2 float4 Tuple packed word_xor max_nan min_nan bf16_of
    whole_i32 whole_i64 add_short read write place buffer offset read_buffer write_buffer Place FAR
    interleave copy_async assume commit_copies wait_copies wait_for_words words_to_lds first_byte copy_to_lds
    """.split()
)
