"""pffn: Per-sample feed-forward: two batched products, each followed by an RMS normalisation.

Generated from spec 3cc97ce2ceb59d96 and schedule f014ff9238b30f3c.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def round_tf32(x):
    """The nearest number with 10 bits after the point, as the matrix unit takes it."""
    bits = x.to(tl.uint32, bitcast=True)
    return ((bits + 0x1000) & 0xFFFFE000).to(tl.float32, bitcast=True)


@triton.jit
def pffn_0(
    x_ptr, w1_ptr, b1_ptr, g1_ptr, w2_ptr, g2_ptr, y_ptr,
    N, D, K,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    BLOCK_D: tl.constexpr,
    EVEN_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    EVEN_E: tl.constexpr,
):
    # u[b, n, k] = sum(f32(x[b, n, d]) * f32(w1[b, d, k]), d)
    # h[b, n, k] = gelu(u[b, n, k] + f32(b1[b, k]))
    # hs[b, n] = sum(h[b, n, k] ** 2, k)
    # r1[b, n] = rsqrt(hs[b, n] / K + eps)
    # z[b, n, e] = sum(h[b, n, k] * f32(g1[k]) * f32(w2[b, k, e]), k)
    # zs[b, n] = sum((z[b, n, e] * r1[b, n]) ** 2, e)
    # r2[b, n] = rsqrt(zs[b, n] / D + eps)
    # y[b, n, e] = z[b, n, e] * r1[b, n] * r2[b, n] * f32(g2[e])
    eps: tl.constexpr = 1e-06
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = (offs_d < D) | EVEN_D
    offs_e = tl.arange(0, BLOCK_E)
    mask_e = (offs_e < D) | EVEN_E
    g2 = tl.load(g2_ptr + offs_e, mask=mask_e, other=0.0)
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, 64)
    b_at = tile // tiles_n
    n_at = tile % tiles_n * 64
    offs_n = n_at + tl.arange(0, 64)
    mask_n = (offs_n < N) | EVEN_N
    hs = tl.full([64], 0.0, tl.float32)
    z = tl.full([64, BLOCK_E], 0.0, tl.float32)
    x = tl.load(
        x_ptr + b_at * N * D + offs_n[:, None] * D + offs_d[None, :],
        mask=mask_n[:, None] & mask_d[None, :],
        other=0.0,
    )
    for k_at in tl.range(0, K, 32, num_stages=1):
        offs_k = k_at + tl.arange(0, 32)
        mask_k = (offs_k < K) | EVEN_K
        w1 = tl.load(
            w1_ptr + b_at * D * K + offs_d[:, None] * K + offs_k[None, :],
            mask=mask_d[:, None] & mask_k[None, :],
            other=0.0,
        )
        u = tl.dot(x, w1)
        b1 = tl.load(b1_ptr + b_at * K + offs_k, mask=mask_k, other=0.0)
        part_1 = u + b1[None, :].to(tl.float32)
        h = 0.5 * part_1 * (1.0 + tl.erf(part_1 * 0.7071067811865476))
        hs_term = h * h
        hs += tl.sum(tl.where(mask_k[None, :], hs_term, 0.0), 1)
        g1 = tl.load(g1_ptr + offs_k, mask=mask_k, other=0.0)
        z_a = round_tf32(h * g1[None, :].to(tl.float32))
        w2 = tl.load(
            w2_ptr + b_at * K * D + offs_k[:, None] * D + offs_e[None, :],
            mask=mask_k[:, None] & mask_e[None, :],
            other=0.0,
        )
        z_b = round_tf32(w2.to(tl.float32))
        z = tl.dot(tl.where(mask_k[None, :], z_a, 0.0), z_b, z, input_precision="tf32")
    r1 = tl.rsqrt((hs / K) + eps)
    part_2 = z * r1[:, None]
    zs_term = part_2 * part_2
    zs = tl.sum(tl.where(mask_e[None, :], zs_term, 0.0), 1)
    r2 = tl.rsqrt((zs / D) + eps)
    y = (((z * r1[:, None]) * r2[:, None]) * g2[None, :].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr + b_at * N * D + offs_n[:, None] * D + offs_e[None, :],
        y,
        mask=mask_n[:, None] & mask_e[None, :],
    )


def launch(x, w1, b1, g1, w2, g2, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, w1, b1, g1, w2, g2, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    N = x.shape[1]
    D = x.shape[2]
    K = w1.shape[2]
    pffn_0[(B * triton.cdiv(N, 64),)](
        x, w1, b1, g1, w2, g2, y,
        N, D, K,
        EVEN_N=N % 64 == 0,
        EVEN_K=K % 32 == 0,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
        EVEN_D=D == max(16, triton.next_power_of_2(D)),
        BLOCK_E=max(16, triton.next_power_of_2(D)),
        EVEN_E=D == max(16, triton.next_power_of_2(D)),
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
    y = torch.empty((B, N, D), dtype=torch.float16, device=x.device)
    launch(x, w1, b1, g1, w2, g2, y)
    return y
