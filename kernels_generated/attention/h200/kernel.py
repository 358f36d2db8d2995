"""attention: Average the values v by the softmax of the scaled products of queries and keys.

Generated from spec 0ff4dd0fe3eb9b35 and schedule 1b5789c0275e745f.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_0(
    q_ptr, k_ptr, v_ptr, y_ptr,
    M: tl.constexpr,
    D: tl.constexpr,
    N: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    EVEN_D: tl.constexpr,
):
    # s[h, m, n] = sum(f32(q[h, m, d]) * f32(k[h, n, d]), d)
    # a[h, m, n] = s[h, m, n] * rsqrt(f32(D))
    # mx[h, m] = max(a[h, m, n], n)
    # p[h, m, n] = exp(a[h, m, n] - mx[h, m])
    # l[h, m] = sum(p[h, m, n], n)
    # o[h, m, d] = sum(p[h, m, n] * f32(v[h, n, d]), n)
    # y[h, m, d] = o[h, m, d] / l[h, m]
    LOG2_E: tl.constexpr = 1.4426950408889634
    a_factor = tl.rsqrt(tl.cast(D, tl.float32))
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = (offs_d < D) | EVEN_D
    tile = tl.program_id(0)
    tiles_m = tl.cdiv(M, 128)
    h_at = tile // tiles_m
    m_at = tile % tiles_m * 128
    offs_m = m_at + tl.arange(0, 128)
    mask_m = (offs_m < M) | EVEN_M
    mx = tl.full([128], -1e+38, tl.float32)
    l = tl.full([128], 0.0, tl.float32)
    o = tl.full([128, BLOCK_D], 0.0, tl.float32)
    q = tl.load(
        q_ptr + h_at * M * D + offs_m[:, None] * D + offs_d[None, :],
        mask=mask_m[:, None] & mask_d[None, :],
        other=0.0,
    )
    for n_at in tl.range(0, N, 64, num_stages=3):
        offs_n = n_at + tl.arange(0, 64)
        mask_n = (offs_n < N) | EVEN_N
        mx_before = mx
        k = tl.load(
            k_ptr + h_at * N * D + offs_n[:, None] * D + offs_d[None, :],
            mask=mask_n[:, None] & mask_d[None, :],
            other=0.0,
        )
        s = tl.dot(q, tl.trans(k))
        mx = tl.maximum(mx, tl.max(tl.where(mask_n[None, :], s, float("-inf")), 1) * a_factor)
        mx_scale = tl.exp(mx_before - mx)
        l = l * mx_scale
        p = tl.exp2(s * (a_factor * LOG2_E) - mx[:, None] * LOG2_E)
        l += tl.sum(tl.where(mask_n[None, :], p, 0.0), 1)
        o = o * mx_scale[:, None]
        o_a = p.to(tl.bfloat16)
        v = tl.load(
            v_ptr + h_at * N * D + offs_n[:, None] * D + offs_d[None, :],
            mask=mask_n[:, None] & mask_d[None, :],
            other=0.0,
        )
        o = tl.dot(tl.where(mask_n[None, :], o_a, 0.0), v, o)
    y = (o / l[:, None]).to(tl.bfloat16)
    tl.store(
        y_ptr + h_at * M * D + offs_m[:, None] * D + offs_d[None, :],
        y,
        mask=mask_m[:, None] & mask_d[None, :],
    )


def launch(q, k, v, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (q, k, v, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    H = q.shape[0]
    M = q.shape[1]
    D = q.shape[2]
    N = k.shape[1]
    attention_0[(H * triton.cdiv(M, 128),)](
        q, k, v, y,
        M, D, N,
        EVEN_M=M % 128 == 0,
        EVEN_N=N % 64 == 0,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
        EVEN_D=D == max(16, triton.next_power_of_2(D)),
        num_warps=4,
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


def attention(q, k, v):
    """Average the values v by the softmax of the scaled products of queries and keys."""
    _require("q", q, torch.bfloat16, ("H", "M", "D"), q)
    H = q.shape[0]
    M = q.shape[1]
    D = q.shape[2]
    _require("k", k, torch.bfloat16, (H, "N", D), q)
    N = k.shape[1]
    _require("v", v, torch.bfloat16, (H, N, D), q)
    y = torch.empty((H, M, D), dtype=torch.bfloat16, device=q.device)
    launch(q, k, v, y)
    return y
