"""eight: Multiply two matrices of 8-bit floats, the second one by its rows.

Generated from spec 282865e2c12e1a93 and schedule 0c90c6cc2ec96e4f.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def eight_0(
    x_ptr, w_ptr, acc_ptr,
    M, K, N,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # acc[m, n] = sum(f32(x[m, k]) * f32(w[n, k]), k)
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, 64)
    m_at = tile // tiles_n * 64
    n_at = tile % tiles_n * 64
    offs_m = m_at + tl.arange(0, 64)
    mask_m = (offs_m < M) | EVEN_M
    offs_n = n_at + tl.arange(0, 64)
    mask_n = (offs_n < N) | EVEN_N
    acc = tl.full([64, 64], 0.0, tl.float32)
    for k_at in tl.range(0, K, 32, num_stages=1):
        offs_k = k_at + tl.arange(0, 32)
        mask_k = (offs_k < K) | EVEN_K
        x = tl.load(
            x_ptr + offs_m[:, None] * K + offs_k[None, :],
            mask=mask_m[:, None] & mask_k[None, :],
            other=0.0,
        )
        acc_a = x.to(tl.float32).to(tl.bfloat16)
        w = tl.load(
            w_ptr + offs_n[:, None] * K + offs_k[None, :],
            mask=mask_n[:, None] & mask_k[None, :],
            other=0.0,
        )
        acc_b = w.to(tl.float32).to(tl.bfloat16)
        acc = tl.dot(acc_a, tl.trans(acc_b), acc)
    acc_out = acc.to(tl.bfloat16)
    tl.store(
        acc_ptr + offs_m[:, None] * N + offs_n[None, :],
        acc_out,
        mask=mask_m[:, None] & mask_n[None, :],
    )


def launch(x, w, acc):
    """Runs the kernel on contiguous tensors of one device; writes acc."""
    for tensor in (x, w, acc):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    N = w.shape[0]
    eight_0[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](
        x, w, acc,
        M, K, N,
        EVEN_M=M % 64 == 0,
        EVEN_N=N % 64 == 0,
        EVEN_K=K % 32 == 0,
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


def eight(x, w):
    """Multiply two matrices of 8-bit floats, the second one by its rows."""
    _require("x", x, torch.float8_e4m3fn, ("M", "K"), x)
    M = x.shape[0]
    K = x.shape[1]
    _require("w", w, torch.float8_e4m3fn, ("N", K), x)
    N = w.shape[0]
    acc = torch.empty((M, N), dtype=torch.bfloat16, device=x.device)
    launch(x, w, acc)
    return acc
