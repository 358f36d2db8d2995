"""Each program reads what its neighbour may have written: the order shows."""

import triton
import triton.language as tl


@triton.jit
def scale_0(x, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    tl.store(y + at, tl.load(x + at, mask=inside), mask=inside)
    before = tl.load(y + at - BLOCK, mask=inside & (at >= BLOCK), other=0.0)
    tl.store(y + at, before + 1.0, mask=inside)


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes workspace and outputs."""
    M, N = x.shape
    scale_0[(triton.cdiv(M * N, 256),)](x, y, M, N, BLOCK=256, num_warps=4)
