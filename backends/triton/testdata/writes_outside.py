"""Writes a block before the first: positions are shifted."""

import triton
import triton.language as tl


@triton.jit
def scale_0(x, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    tl.store(y + at - 300, tl.load(x + at, mask=inside), mask=inside)


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes workspace and outputs."""
    M, N = x.shape
    scale_0[(triton.cdiv(M * N, 256),)](x, y, M, N, BLOCK=256, num_warps=4)
