"""scale: y = 2 * x + 1, with a mask at the edge."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale_0(x, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    tile = tl.load(x + at, mask=inside, other=0.0)
    tl.store(y + at, tile * 2.0 + 1.0, mask=inside)


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes workspace and outputs."""
    M, N = x.shape
    scale_0[(triton.cdiv(M * N, 256),)](x, y, M, N, BLOCK=256, num_warps=4)


def scale(x):
    """y[m, n] = 2 * x[m, n] + 1"""
    y = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    launch(x, y)
    return y
