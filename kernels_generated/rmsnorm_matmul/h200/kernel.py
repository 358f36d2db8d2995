"""rmsnorm_matmul: Project the RMS-normalised rows of x through w, then gate with SiLU.

Generated from spec f5929ec91dac39fc and schedule 40889769d20d17d5.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def rmsnorm_matmul_0(
    x_ptr, g_ptr, w_ptr, y_ptr,
    x_desc, w_desc,
    M, K, N,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    BULK_X: tl.constexpr,
    BULK_W: tl.constexpr,
):
    # ss[m] = sum(f32(x[m, k]) ** 2, k)
    # r[m] = rsqrt(ss[m] / K + 1e-06)
    # acc[m, n] = sum(f32(x[m, k]) * f32(g[k]) * f32(w[k, n]), k)
    # y[m, n] = silu(acc[m, n] * r[m])
    tile = tl.program_id(0)
    tiles_m = tl.cdiv(M, 128)
    tiles_n = tl.cdiv(N, 256)
    group_start = tile // (8 * tiles_n) * 8
    group_size = min(tiles_m - group_start, 8)
    in_group = tile % (8 * tiles_n)
    m_at = (group_start + in_group % group_size) * 128
    n_at = in_group // group_size * 256
    offs_m = m_at + tl.arange(0, 128)
    mask_m = (offs_m < M) | EVEN_M
    offs_n = n_at + tl.arange(0, 256)
    mask_n = (offs_n < N) | EVEN_N
    ss = tl.full([128], 0.0, tl.float32)
    acc = tl.full([128, 256], 0.0, tl.float32)
    for k_at in tl.range(0, K, 64, num_stages=3):
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
        part_1 = x.to(tl.float32)
        ss_term = part_1 * part_1
        ss += tl.sum(ss_term, 1)
        g = tl.load(g_ptr + offs_k, mask=mask_k, other=0.0)
        acc_a = (x.to(tl.float32) * g[None, :].to(tl.float32)).to(tl.bfloat16)
        if BULK_W:
            w = w_desc.load([k_at, n_at])
        else:
            w = tl.load(
                w_ptr + offs_k[:, None] * N + offs_n[None, :],
                mask=mask_k[:, None] & mask_n[None, :],
                other=0.0,
            )
        acc = tl.dot(acc_a, w, acc)
    r = tl.rsqrt((ss / K) + 1e-06)
    part_2 = acc * r[:, None]
    y = (part_2 * tl.sigmoid(part_2)).to(tl.bfloat16)
    tl.store(
        y_ptr + offs_m[:, None] * N + offs_n[None, :],
        y,
        mask=mask_m[:, None] & mask_n[None, :],
    )


def launch(x, g, w, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, g, w, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    N = w.shape[1]
    rmsnorm_matmul_0[(triton.cdiv(M, 128) * triton.cdiv(N, 256),)](
        x, g, w, y,
        TensorDescriptor(x, [M, K], [K, 1], [128, 64]) if K % 8 == 0 else None,
        TensorDescriptor(w, [K, N], [N, 1], [64, 256]) if N % 8 == 0 else None,
        M, K, N,
        EVEN_M=M % 128 == 0,
        EVEN_N=N % 256 == 0,
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


def rmsnorm_matmul(x, g, w):
    """Project the RMS-normalised rows of x through w, then gate with SiLU."""
    _require("x", x, torch.bfloat16, ("M", "K"), x)
    M = x.shape[0]
    K = x.shape[1]
    _require("g", g, torch.bfloat16, (K,), x)
    _require("w", w, torch.bfloat16, (K, "N"), x)
    N = w.shape[1]
    y = torch.empty((M, N), dtype=torch.bfloat16, device=x.device)
    launch(x, g, w, y)
    return y
