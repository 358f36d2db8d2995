"""A kernel whose assembly the assembler refuses, which on some targets is only printed."""

import triton
import triton.language as tl


@triton.jit
def scale_0(x, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    tile = tl.load(x + at, mask=inside, other=0.0)
    worse = tl.inline_asm_elementwise(
        "no_such_instruction $0, $1;", "=r,r", [tile], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y + at, worse, mask=inside)


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes workspace and outputs."""
    M, N = x.shape
    scale_0[(triton.cdiv(M * N, 256),)](x, y, M, N, BLOCK=256, num_warps=4)
