"""layer_norm: Bring each row to mean 0 and variance 1, then scale it by g and shift it by b.

Generated from spec f12a38eb734fdc36 and schedule 16f5d5dd8828f01b.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_0(
    x_ptr, g_ptr, b_ptr, y_ptr,
    K,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # s[m] = sum(x[m, k], k)
    # mean[m] = s[m] / K
    # ss[m] = sum((x[m, k] - mean[m]) ** 2, k)
    # r[m] = rsqrt(ss[m] / K + eps)
    # y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + b[k]
    eps: tl.constexpr = 1e-05
    offs_k = tl.arange(0, BLOCK_K)
    mask_k = (offs_k < K) | EVEN_K
    g = tl.load(g_ptr + offs_k, mask=mask_k, other=0.0)
    b = tl.load(b_ptr + offs_k, mask=mask_k, other=0.0)
    tile = tl.program_id(0)
    m_at = tile
    x = tl.load(x_ptr + m_at * K + offs_k, mask=mask_k, other=0.0)
    s = tl.sum(x, 0)
    mean = s / K
    part_1 = x - mean
    ss_term = part_1 * part_1
    ss = tl.sum(tl.where(mask_k, ss_term, 0.0), 0)
    r = tl.rsqrt((ss / K) + eps)
    y = (((x - mean) * r) * g) + b
    tl.store(y_ptr + m_at * K + offs_k, y, mask=mask_k)


def launch(x, g, b, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, g, b, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    layer_norm_0[(M,)](
        x, g, b, y,
        K,
        BLOCK_K=triton.next_power_of_2(K),
        EVEN_K=K == triton.next_power_of_2(K),
        num_warps=4,
        num_stages=1,
    )


def _require(name, tensor, dtype, shape, like):
    """Refuses what the kernel is not built for. shape: numbers, and the names of open sizes."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"`{name}` is no tensor; allowed: a tensor of {dtype}")
    found = tensor.shape
    fits = tensor.dtype == dtype and len(found) == len(shape)
    for length, size in zip(found, shape):
        if length != size and isinstance(size, int):
            fits = False
    if not fits:
        sizes = ", ".join([f"{size}" for size in shape])
        raise ValueError(f"`{name}` is {tensor.dtype}{list(found)}; allowed: {dtype}[{sizes}]")
    if not tensor.is_contiguous():
        raise ValueError(
            f"`{name}` has strides {tensor.stride()}; allowed: row-major order without gaps, as of "
            f"{name}.contiguous()"
        )
    if tensor.device != like.device:
        raise ValueError(f"`{name}` is on {tensor.device}; allowed: {like.device}, as the first input")
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"`{name}` requires gradients, and the kernel computes none; call it under "
            f"torch.no_grad(), or give it {name}.detach()"
        )


def layer_norm(x, g, b):
    """Bring each row to mean 0 and variance 1, then scale it by g and shift it by b."""
    _require("x", x, torch.float32, ("M", "K"), x)
    M = x.shape[0]
    K = x.shape[1]
    _require("g", g, torch.float32, (K,), x)
    _require("b", b, torch.float32, (K,), x)
    y = torch.empty((M, K), dtype=torch.float32, device=x.device)
    launch(x, g, b, y)
    return y
