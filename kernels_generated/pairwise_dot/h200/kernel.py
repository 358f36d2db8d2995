"""pairwise_dot: Multiply every two features of a sample; keep the products below the diagonal.

Generated from spec f1630f2e12cffdbd and schedule db90d8734918c5f6.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pairwise_dot_0(
    x_ptr, y_ptr,
    F, D,
    BLOCK_I: tl.constexpr,
    EVEN_I: tl.constexpr,
    BLOCK_J: tl.constexpr,
    EVEN_J: tl.constexpr,
    BLOCK_D: tl.constexpr,
    EVEN_D: tl.constexpr,
):
    # z[b, i, j] = sum(f32(x[b, i, d]) * f32(x[b, j, d]), d)
    # y[b, i, j] = where(i > j, z[b, i, j], 0.0)
    offs_i = tl.arange(0, BLOCK_I)
    mask_i = (offs_i < F) | EVEN_I
    offs_j = tl.arange(0, BLOCK_J)
    mask_j = (offs_j < F) | EVEN_J
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = (offs_d < D) | EVEN_D
    tile = tl.program_id(0)
    b_at = tile
    x = tl.load(
        x_ptr + b_at * F * D + offs_i[:, None] * D + offs_d[None, :],
        mask=mask_i[:, None] & mask_d[None, :],
        other=0.0,
    )
    x_2 = tl.load(
        x_ptr + b_at * F * D + offs_j[:, None] * D + offs_d[None, :],
        mask=mask_j[:, None] & mask_d[None, :],
        other=0.0,
    )
    z = tl.dot(x, tl.trans(x_2))
    y = tl.where(offs_i[:, None] > offs_j[None, :], z, 0.0).to(tl.float16)
    tl.store(
        y_ptr + b_at * F * F + offs_i[:, None] * F + offs_j[None, :],
        y,
        mask=mask_i[:, None] & mask_j[None, :],
    )


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    F = x.shape[1]
    D = x.shape[2]
    pairwise_dot_0[(B,)](
        x, y,
        F, D,
        BLOCK_I=max(16, triton.next_power_of_2(F)),
        EVEN_I=F == max(16, triton.next_power_of_2(F)),
        BLOCK_J=max(16, triton.next_power_of_2(F)),
        EVEN_J=F == max(16, triton.next_power_of_2(F)),
        BLOCK_D=max(16, triton.next_power_of_2(D)),
        EVEN_D=D == max(16, triton.next_power_of_2(D)),
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


def pairwise_dot(x):
    """Multiply every two features of a sample; keep the products below the diagonal."""
    _require("x", x, torch.float16, ("B", "F", "D"), x)
    B = x.shape[0]
    F = x.shape[1]
    y = torch.empty((B, F, F), dtype=torch.float16, device=x.device)
    launch(x, y)
    return y
