"""pffn: Per-sample feed-forward: two batched products, each followed by an RMS normalisation.

Generated from spec 3cc97ce2ceb59d96 and schedule b63fe19e8ec21198.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def pffn_0(
    x_ptr, w1_ptr, b1_ptr, h_ptr,
    x_desc, w1_desc, h_desc,
    B, N, D, K,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    EVEN_D: tl.constexpr,
    BULK_X: tl.constexpr,
    BULK_W1: tl.constexpr,
    BULK_H: tl.constexpr,
):
    # u[b, n, k] = sum(f32(x[b, n, d]) * f32(w1[b, d, k]), d)
    # h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
    tiles = tl.cdiv(N, 128) * B
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        tiles_n = tl.cdiv(N, 128)
        tiles_b = B
        group_start = tile // (2 * tiles_b) * 2
        group_size = min(tiles_n - group_start, 2)
        in_group = tile % (2 * tiles_b)
        n_at = (group_start + in_group % group_size) * 128
        b_at = in_group // group_size
        offs_n = n_at + tl.arange(0, 128)
        mask_n = (offs_n < N) | EVEN_N
        for k_at in range(0, K, 32):
            offs_k = k_at + tl.arange(0, 32)
            mask_k = (offs_k < K) | EVEN_K
            u = tl.full([128, 32], 0.0, tl.float32)
            for d_at in range(0, D, 32):
                offs_d = d_at + tl.arange(0, 32)
                mask_d = (offs_d < D) | EVEN_D
                if BULK_X:
                    x = tl.reshape(x_desc.load([b_at, n_at, d_at]), [128, 32])
                else:
                    x = tl.load(
                        x_ptr + b_at * N * D + offs_n[:, None] * D + offs_d[None, :],
                        mask=mask_n[:, None] & mask_d[None, :],
                        other=0.0,
                    )
                if BULK_W1:
                    w1 = tl.reshape(w1_desc.load([b_at, d_at, k_at]), [32, 32])
                else:
                    w1 = tl.load(
                        w1_ptr + b_at * D * K + offs_d[:, None] * K + offs_k[None, :],
                        mask=mask_d[:, None] & mask_k[None, :],
                        other=0.0,
                    )
                u = tl.dot(x, w1, u)
            b1 = tl.load(b1_ptr + b_at * K + offs_k, mask=mask_k, other=0.0)
            part_1 = u + b1[None, :].to(tl.float32)
            h = 0.5 * part_1 * (1.0 + tl.erf(part_1 * 0.7071067811865476))
            if BULK_H:
                h_desc.store([b_at, n_at, k_at], tl.reshape(h, [1, 128, 32]))
            else:
                tl.store(
                    h_ptr + b_at * N * K + offs_n[:, None] * K + offs_k[None, :],
                    h,
                    mask=mask_n[:, None] & mask_k[None, :],
                )


@triton.jit
def pffn_1(
    g1_ptr, w2_ptr, g2_ptr, h_ptr, y_ptr,
    h_desc, w2_desc, y_desc,
    B: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    BLOCK_E: tl.constexpr,
    EVEN_E: tl.constexpr,
    BULK_H: tl.constexpr,
    BULK_W2: tl.constexpr,
    BULK_Y: tl.constexpr,
):
    # hs[b, n] = sum(h[b, n, k] ** 2, k)
    # r1[b, n] = rsqrt(hs[b, n] / K + eps)
    # hn[b, n, k] = h[b, n, k] * r1[b, n] * f32(g1[k])
    # z[b, n, e] = sum(hn[b, n, k] * f32(w2[b, k, e]), k)
    # zs[b, n] = sum(z[b, n, e] ** 2, e)
    # r2[b, n] = rsqrt(zs[b, n] / D + eps)
    # y[b, n, e] = z[b, n, e] * r2[b, n] * f32(g2[e])
    eps: tl.constexpr = 1e-06
    offs_e = tl.arange(0, BLOCK_E)
    mask_e = (offs_e < D) | EVEN_E
    g2 = tl.load(g2_ptr + offs_e, mask=mask_e, other=0.0)
    tiles = tl.cdiv(N, 128) * B
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        tiles_n = tl.cdiv(N, 128)
        tiles_b = B
        group_start = tile // (2 * tiles_b) * 2
        group_size = min(tiles_n - group_start, 2)
        in_group = tile % (2 * tiles_b)
        n_at = (group_start + in_group % group_size) * 128
        b_at = in_group // group_size
        offs_n = n_at + tl.arange(0, 128)
        mask_n = (offs_n < N) | EVEN_N
        z = tl.full([128, BLOCK_E], 0.0, tl.float32)
        hs = tl.full([128], 0.0, tl.float32)
        for k_at in range(0, K, 32):
            offs_k = k_at + tl.arange(0, 32)
            mask_k = (offs_k < K) | EVEN_K
            if BULK_H:
                h = tl.reshape(h_desc.load([b_at, n_at, k_at]), [128, 32])
            else:
                h = tl.load(
                    h_ptr + b_at * N * K + offs_n[:, None] * K + offs_k[None, :],
                    mask=mask_n[:, None] & mask_k[None, :],
                    other=0.0,
                )
            hs_term = h * h
            hs += tl.sum(hs_term, 1)
        r1 = tl.rsqrt((hs / K) + eps)
        for k_at in range(0, K, 32):
            offs_k = k_at + tl.arange(0, 32)
            mask_k = (offs_k < K) | EVEN_K
            if BULK_H:
                h = tl.reshape(h_desc.load([b_at, n_at, k_at]), [128, 32])
            else:
                h = tl.load(
                    h_ptr + b_at * N * K + offs_n[:, None] * K + offs_k[None, :],
                    mask=mask_n[:, None] & mask_k[None, :],
                    other=0.0,
                )
            g1 = tl.load(g1_ptr + offs_k, mask=mask_k, other=0.0)
            hn = (h * r1[:, None]) * g1[None, :].to(tl.float32)
            z_a = hn.to(tl.float16)
            if BULK_W2:
                w2 = tl.reshape(w2_desc.load([b_at, k_at, 0]), [32, BLOCK_E])
            else:
                w2 = tl.load(
                    w2_ptr + b_at * K * D + offs_k[:, None] * D + offs_e[None, :],
                    mask=mask_k[:, None] & mask_e[None, :],
                    other=0.0,
                )
            z = tl.dot(z_a, w2, z)
        zs_term = z * z
        zs = tl.sum(tl.where(mask_e[None, :], zs_term, 0.0), 1)
        r2 = tl.rsqrt((zs / D) + eps)
        y = ((z * r2[:, None]) * g2[None, :].to(tl.float32)).to(tl.float16)
        if BULK_Y:
            y_desc.store([b_at, n_at, 0], tl.reshape(y, [1, 128, BLOCK_E]))
        else:
            tl.store(
                y_ptr + b_at * N * D + offs_n[:, None] * D + offs_e[None, :],
                y,
                mask=mask_n[:, None] & mask_e[None, :],
            )


def launch(x, w1, b1, g1, w2, g2, h, y):
    """Runs the kernel on contiguous tensors of one device; writes h, y."""
    for tensor in (x, w1, b1, g1, w2, g2, h, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    N = x.shape[1]
    D = x.shape[2]
    K = w1.shape[2]
    pffn_0[(min(triton.cdiv(N, 128) * B, 396),)](
        x, w1, b1, h,
        TensorDescriptor(x, [B, N, D], [N * D, D, 1], [1, 128, 32]) if D % 8 == 0 else None,
        TensorDescriptor(w1, [B, D, K], [D * K, K, 1], [1, 32, 32]) if K % 8 == 0 else None,
        TensorDescriptor(h, [B, N, K], [N * K, K, 1], [1, 128, 32]) if K % 4 == 0 else None,
        B, N, D, K,
        EVEN_N=N % 128 == 0,
        EVEN_K=K % 32 == 0,
        EVEN_D=D % 32 == 0,
        BULK_X=D % 8 == 0,
        BULK_W1=K % 8 == 0,
        BULK_H=K % 4 == 0,
        num_warps=4,
        num_stages=3,
    )
    pffn_1[(min(triton.cdiv(N, 128) * B, 264),)](
        g1, w2, g2, h, y,
        TensorDescriptor(h, [B, N, K], [N * K, K, 1], [1, 128, 32]) if K % 4 == 0 else None,
        TensorDescriptor(w2, [B, K, D], [K * D, D, 1], [1, 32, max(16, triton.next_power_of_2(D))]) if D % 8 == 0 and max(16, triton.next_power_of_2(D)) <= 256 else None,
        TensorDescriptor(y, [B, N, D], [N * D, D, 1], [1, 128, max(16, triton.next_power_of_2(D))]) if D % 8 == 0 and max(16, triton.next_power_of_2(D)) <= 256 else None,
        B, N, D, K,
        EVEN_N=N % 128 == 0,
        EVEN_K=K % 32 == 0,
        BLOCK_E=max(16, triton.next_power_of_2(D)),
        EVEN_E=D == max(16, triton.next_power_of_2(D)),
        BULK_H=K % 4 == 0,
        BULK_W2=D % 8 == 0 and max(16, triton.next_power_of_2(D)) <= 256,
        BULK_Y=D % 8 == 0 and max(16, triton.next_power_of_2(D)) <= 256,
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


def pffn(x, w1, b1, g1, w2, g2):
    """Per-sample feed-forward: two batched products, each followed by an RMS normalisation."""
    _require("x", x, torch.float16, ("B", "N", "D"), x)
    B = x.shape[0]
    N = x.shape[1]
    D = x.shape[2]
    _require("w1", w1, torch.float16, (B, D, "K"), x)
    K = w1.shape[2]
    _require("b1", b1, torch.float16, (B, K), x)
    _require("g1", g1, torch.float16, (K,), x)
    _require("w2", w2, torch.float16, (B, K, D), x)
    _require("g2", g2, torch.float16, (D,), x)
    h = torch.empty((B, N, K), dtype=torch.float32, device=x.device)
    y = torch.empty((B, N, D), dtype=torch.float16, device=x.device)
    launch(x, w1, b1, g1, w2, g2, h, y)
    return y
