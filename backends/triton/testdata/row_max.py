"""row_max: the largest entry of each row and where it first stands."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_max_0(x, y, p, M, N, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.arange(0, BLOCK)
    row = tl.load(x + m * N + n, mask=n < N, other=float("-inf"))
    tl.store(y + m, tl.max(row, axis=0))
    tl.store(p + m, tl.argmax(row, axis=0))


def launch(x, y, p):
    """Runs the kernel on contiguous tensors of one device; writes workspace and outputs."""
    M, N = x.shape
    BLOCK = triton.next_power_of_2(N)
    row_max_0[(M,)](x, y, p, M, N, BLOCK=BLOCK, num_warps=1)


def row_max(x):
    """y[m] = max(x[m, n], n); p[m] = argmax(x[m, n], n)"""
    y = torch.empty(x.shape[:1], dtype=torch.float32, device=x.device)
    p = torch.empty(x.shape[:1], dtype=torch.int32, device=x.device)
    launch(x, y, p)
    return y, p
