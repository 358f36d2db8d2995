"""matmul_bias_gelu: Multiply two matrices, add a bias to each row and apply GELU.

Generated from spec 035bab293e63640e and schedule 2d1c9bc9783d2604.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_bias_gelu_0(
    x_ptr, w_ptr, acc_parts_ptr,
    M, K, N,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # acc_parts[acc_s, m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k=range(acc_s * (32 * ((K + 127)
    #     // 128)), minimum((acc_s + 1) * (32 * ((K + 127) // 128)), K)))
    tile = tl.program_id(0)
    tiles_m = tl.cdiv(M, 64)
    tiles_n = tl.cdiv(N, 64)
    acc_s_at = tile // (tiles_m * tiles_n)
    m_at = tile // tiles_n % tiles_m * 64
    n_at = tile % tiles_n * 64
    offs_m = m_at + tl.arange(0, 64)
    mask_m = (offs_m < M) | EVEN_M
    offs_n = n_at + tl.arange(0, 64)
    mask_n = (offs_n < N) | EVEN_N
    acc_parts = tl.full([64, 64], 0.0, tl.float32)
    for k_at in tl.range(acc_s_at * (32 * ((K + 127) // 128)), min((acc_s_at + 1) * (32 * ((K + 127) // 128)), K), 32, num_stages=1):
        offs_k = k_at + tl.arange(0, 32)
        mask_k = (offs_k < K) | EVEN_K
        x = tl.load(
            x_ptr + offs_m[:, None] * K + offs_k[None, :],
            mask=mask_m[:, None] & mask_k[None, :],
            other=0.0,
        )
        w = tl.load(
            w_ptr + offs_k[:, None] * N + offs_n[None, :],
            mask=mask_k[:, None] & mask_n[None, :],
            other=0.0,
        )
        acc_parts = tl.dot(x, w, acc_parts)
    tl.store(
        acc_parts_ptr + acc_s_at * M * N + offs_m[:, None] * N + offs_n[None, :],
        acc_parts,
        mask=mask_m[:, None] & mask_n[None, :],
    )


@triton.jit
def matmul_bias_gelu_1(
    b_ptr, acc_parts_ptr, y_ptr,
    M, N,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
):
    # acc[m, n] = sum(acc_parts[acc_s, m, n], acc_s=4)
    # y[m, n] = gelu(acc[m, n] + f32(b[n]))
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, 64)
    m_at = tile // tiles_n * 64
    n_at = tile % tiles_n * 64
    offs_m = m_at + tl.arange(0, 64)
    mask_m = (offs_m < M) | EVEN_M
    offs_n = n_at + tl.arange(0, 64)
    mask_n = (offs_n < N) | EVEN_N
    acc = tl.full([64, 64], 0.0, tl.float32)
    for acc_s_at in tl.static_range(0, 4):
        acc_parts = tl.load(
            acc_parts_ptr + acc_s_at * M * N + offs_m[:, None] * N + offs_n[None, :],
            mask=mask_m[:, None] & mask_n[None, :],
            other=0.0,
        )
        acc += acc_parts
    b = tl.load(b_ptr + offs_n, mask=mask_n, other=0.0)
    part_1 = acc + b[None, :].to(tl.float32)
    y = (0.5 * part_1 * (1.0 + tl.erf(part_1 * 0.7071067811865476))).to(tl.bfloat16)
    tl.store(
        y_ptr + offs_m[:, None] * N + offs_n[None, :],
        y,
        mask=mask_m[:, None] & mask_n[None, :],
    )


def launch(x, w, b, acc_parts, y):
    """Runs the kernel on contiguous tensors of one device; writes acc_parts, y."""
    for tensor in (x, w, b, acc_parts, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    N = w.shape[1]
    matmul_bias_gelu_0[(4 * triton.cdiv(M, 64) * triton.cdiv(N, 64),)](
        x, w, acc_parts,
        M, K, N,
        EVEN_M=M % 64 == 0,
        EVEN_N=N % 64 == 0,
        EVEN_K=K % 32 == 0,
        num_warps=4,
        num_stages=1,
    )
    matmul_bias_gelu_1[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](
        b, acc_parts, y,
        M, N,
        EVEN_M=M % 64 == 0,
        EVEN_N=N % 64 == 0,
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


def matmul_bias_gelu(x, w, b):
    """Multiply two matrices, add a bias to each row and apply GELU."""
    _require("x", x, torch.bfloat16, ("M", "K"), x)
    M = x.shape[0]
    K = x.shape[1]
    _require("w", w, torch.bfloat16, (K, "N"), x)
    N = w.shape[1]
    _require("b", b, torch.bfloat16, (N,), x)
    acc_parts = torch.empty((4, M, N), dtype=torch.float32, device=x.device)
    y = torch.empty((M, N), dtype=torch.bfloat16, device=x.device)
    launch(x, w, b, acc_parts, y)
    return y
