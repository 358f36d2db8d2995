"""matmul_bias_gelu: Multiply two matrices, add a bias to each row and apply GELU.

Generated from spec 035bab293e63640e and schedule 8a77413f9135aefc.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_bias_gelu_0(
    x_ptr, w_ptr, b_ptr, y_ptr,
    x_desc, w_desc,
    M, K, N,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    BULK_X: tl.constexpr,
    BULK_W: tl.constexpr,
):
    # acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)
    # y[m, n] = gelu(acc[m, n] + f32(b[n]))
    tiles = tl.cdiv(M, 128) * tl.cdiv(N, 128)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        tiles_m = tl.cdiv(M, 128)
        tiles_n = tl.cdiv(N, 128)
        group_start = tile // (8 * tiles_n) * 8
        group_size = min(tiles_m - group_start, 8)
        in_group = tile % (8 * tiles_n)
        m_at = (group_start + in_group % group_size) * 128
        n_at = in_group // group_size * 128
        offs_m = m_at + tl.arange(0, 128)
        mask_m = (offs_m < M) | EVEN_M
        offs_n = n_at + tl.arange(0, 128)
        mask_n = (offs_n < N) | EVEN_N
        acc = tl.full([128, 128], 0.0, tl.float32)
        for k_at in range(0, K, 64):
            offs_k = k_at + tl.arange(0, 64)
            mask_k = (offs_k < K) | EVEN_K
            if BULK_X:
                x = x_desc.load([m_at, k_at])
            else:
                x = tl.load(
                    x_ptr + offs_m[:, None] * K + offs_k[None, :],
                    mask=mask_m[:, None] & mask_k[None, :],
                    other=0.0,
                )
            if BULK_W:
                w = w_desc.load([k_at, n_at])
            else:
                w = tl.load(
                    w_ptr + offs_k[:, None] * N + offs_n[None, :],
                    mask=mask_k[:, None] & mask_n[None, :],
                    other=0.0,
                )
            acc = tl.dot(x, w, acc)
        b = tl.load(b_ptr + offs_n, mask=mask_n, other=0.0)
        part_1 = acc + b[None, :].to(tl.float32)
        y = (0.5 * part_1 * (1.0 + tl.erf(part_1 * 0.7071067811865476))).to(tl.bfloat16)
        tl.store(
            y_ptr + offs_m[:, None] * N + offs_n[None, :],
            y,
            mask=mask_m[:, None] & mask_n[None, :],
        )


def launch(x, w, b, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, w, b, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    N = w.shape[1]
    matmul_bias_gelu_0[(min(triton.cdiv(M, 128) * triton.cdiv(N, 128), 132),)](
        x, w, b, y,
        TensorDescriptor(x, [M, K], [K, 1], [128, 64]) if K % 8 == 0 else None,
        TensorDescriptor(w, [K, N], [N, 1], [64, 128]) if N % 8 == 0 else None,
        M, K, N,
        EVEN_M=M % 128 == 0,
        EVEN_N=N % 128 == 0,
        EVEN_K=K % 64 == 0,
        BULK_X=K % 8 == 0,
        BULK_W=N % 8 == 0,
        num_warps=8,
        num_stages=3,
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
    y = torch.empty((M, N), dtype=torch.bfloat16, device=x.device)
    launch(x, w, b, y)
    return y
