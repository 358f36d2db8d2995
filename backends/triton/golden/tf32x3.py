"""product: Multiply two matrices.

Generated from spec 315a9656e4f22dd5 and schedule 2ed51bdc580bc019.
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
def product_0(
    x_ptr, acc_ah_ptr, acc_al_ptr,
    M, K,
    EVEN_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # acc_ah[m, k] = tf32(x[m, k])
    # acc_al[m, k] = tf32(x[m, k] - f32(acc_ah[m, k]))
    tile = tl.program_id(0)
    tiles_k = tl.cdiv(K, 32)
    m_at = tile // tiles_k * 64
    k_at = tile % tiles_k * 32
    offs_m = m_at + tl.arange(0, 64)
    mask_m = (offs_m < M) | EVEN_M
    offs_k = k_at + tl.arange(0, 32)
    mask_k = (offs_k < K) | EVEN_K
    x = tl.load(
        x_ptr + offs_m[:, None] * K + offs_k[None, :],
        mask=mask_m[:, None] & mask_k[None, :],
        other=0.0,
    )
    acc_ah = round_tf32(x)
    tl.store(
        acc_ah_ptr + offs_m[:, None] * K + offs_k[None, :],
        acc_ah,
        mask=mask_m[:, None] & mask_k[None, :],
    )
    acc_al = round_tf32(x - acc_ah)
    tl.store(
        acc_al_ptr + offs_m[:, None] * K + offs_k[None, :],
        acc_al,
        mask=mask_m[:, None] & mask_k[None, :],
    )


@triton.jit
def product_1(
    w_ptr, acc_bh_ptr, acc_bl_ptr,
    K, N,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # acc_bh[n, k] = tf32(w[k, n])
    # acc_bl[n, k] = tf32(w[k, n] - f32(acc_bh[n, k]))
    tile = tl.program_id(0)
    tiles_k = tl.cdiv(K, 32)
    n_at = tile // tiles_k * 64
    k_at = tile % tiles_k * 32
    offs_n = n_at + tl.arange(0, 64)
    mask_n = (offs_n < N) | EVEN_N
    offs_k = k_at + tl.arange(0, 32)
    mask_k = (offs_k < K) | EVEN_K
    w = tl.load(
        w_ptr + offs_k[:, None] * N + offs_n[None, :],
        mask=mask_k[:, None] & mask_n[None, :],
        other=0.0,
    )
    acc_bh = round_tf32(tl.trans(w))
    tl.store(
        acc_bh_ptr + offs_n[:, None] * K + offs_k[None, :],
        acc_bh,
        mask=mask_n[:, None] & mask_k[None, :],
    )
    acc_bl = round_tf32(tl.trans(w) - acc_bh)
    tl.store(
        acc_bl_ptr + offs_n[:, None] * K + offs_k[None, :],
        acc_bl,
        mask=mask_n[:, None] & mask_k[None, :],
    )


@triton.jit
def product_2(
    acc_al_ptr, acc_bh_ptr, acc_ah_ptr, acc_bl_ptr, acc_ptr,
    M, K, N,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # acc[m, n] = sum(acc_al[m, k] * acc_bh[n, k]
    #     + acc_ah[m, k] * acc_bl[n, k]
    #     + acc_ah[m, k] * acc_bh[n, k], k)
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
        acc_al = tl.load(
            acc_al_ptr + offs_m[:, None] * K + offs_k[None, :],
            mask=mask_m[:, None] & mask_k[None, :],
            other=0.0,
        )
        acc_bh = tl.load(
            acc_bh_ptr + offs_n[:, None] * K + offs_k[None, :],
            mask=mask_n[:, None] & mask_k[None, :],
            other=0.0,
        )
        acc_step = tl.dot(acc_al, tl.trans(acc_bh), input_precision="tf32")
        acc_ah = tl.load(
            acc_ah_ptr + offs_m[:, None] * K + offs_k[None, :],
            mask=mask_m[:, None] & mask_k[None, :],
            other=0.0,
        )
        acc_bl = tl.load(
            acc_bl_ptr + offs_n[:, None] * K + offs_k[None, :],
            mask=mask_n[:, None] & mask_k[None, :],
            other=0.0,
        )
        acc_step = tl.dot(acc_ah, tl.trans(acc_bl), acc_step, input_precision="tf32")
        acc_step = tl.dot(acc_ah, tl.trans(acc_bh), acc_step, input_precision="tf32")
        acc += acc_step
    tl.store(
        acc_ptr + offs_m[:, None] * N + offs_n[None, :],
        acc,
        mask=mask_m[:, None] & mask_n[None, :],
    )


def launch(x, w, acc_ah, acc_al, acc_bh, acc_bl, acc):
    """Runs the kernel on contiguous tensors of one device; writes acc_ah, acc_al, acc_bh, acc_bl, acc."""
    for tensor in (x, w, acc_ah, acc_al, acc_bh, acc_bl, acc):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    M = x.shape[0]
    K = x.shape[1]
    N = w.shape[1]
    product_0[(triton.cdiv(M, 64) * triton.cdiv(K, 32),)](
        x, acc_ah, acc_al,
        M, K,
        EVEN_M=M % 64 == 0,
        EVEN_K=K % 32 == 0,
        num_warps=4,
        num_stages=1,
    )
    product_1[(triton.cdiv(N, 64) * triton.cdiv(K, 32),)](
        w, acc_bh, acc_bl,
        K, N,
        EVEN_N=N % 64 == 0,
        EVEN_K=K % 32 == 0,
        num_warps=4,
        num_stages=1,
    )
    product_2[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](
        acc_al, acc_bh, acc_ah, acc_bl, acc,
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


def product(x, w):
    """Multiply two matrices."""
    _require("x", x, torch.float32, ("M", "K"), x)
    M = x.shape[0]
    K = x.shape[1]
    _require("w", w, torch.float32, (K, "N"), x)
    N = w.shape[1]
    acc_ah = torch.empty((M, K), dtype=torch.float32, device=x.device)
    acc_al = torch.empty((M, K), dtype=torch.float32, device=x.device)
    acc_bh = torch.empty((N, K), dtype=torch.float32, device=x.device)
    acc_bl = torch.empty((N, K), dtype=torch.float32, device=x.device)
    acc = torch.empty((M, N), dtype=torch.float32, device=x.device)
    launch(x, w, acc_ah, acc_al, acc_bh, acc_bl, acc)
    return acc
