"""cumsum: Add up each row from its start to every place.

Generated from spec 66c4a252b85db64e and schedule 0fc0b164951b6c74.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_0(
    x_ptr, y_ptr,
    M, K,
    EVEN_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # y[m, k] = cumsum(x[m, k], k)
    tile = tl.program_id(0)
    m_at = tile * 4
    offs_m = m_at + tl.arange(0, 4)
    mask_m = (offs_m < M) | EVEN_M
    y_carry = tl.full([4], 0.0, tl.float32)
    for k_at in tl.range(0, K, 256, num_stages=1):
        offs_k = k_at + tl.arange(0, 256)
        mask_k = (offs_k < K) | EVEN_K
        x = tl.load(
            x_ptr + offs_m[:, None] * K + offs_k[None, :],
            mask=mask_m[:, None] & mask_k[None, :],
            other=0.0,
        )
        part_1 = tl.cumsum(x, 1)
        y = y_carry[:, None] + part_1
        y_carry += tl.sum(tl.where(offs_k[None, :] == k_at + 255, part_1, 0.0), 1)
        tl.store(
            y_ptr + offs_m[:, None] * K + offs_k[None, :],
            y,
            mask=mask_m[:, None] & mask_k[None, :],
        )


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    cumsum_0[(triton.cdiv(M, 4),)](
        x, y,
        M, K,
        EVEN_M=M % 4 == 0,
        EVEN_K=K % 256 == 0,
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


def cumsum(x):
    """Add up each row from its start to every place."""
    _require("x", x, torch.float32, ("M", "K"), x)
    M = x.shape[0]
    K = x.shape[1]
    y = torch.empty((M, K), dtype=torch.float32, device=x.device)
    launch(x, y)
    return y
