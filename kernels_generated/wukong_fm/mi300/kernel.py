"""wukong_fm: Interact the N embeddings of each sample: x times its transpose times y.

Generated from spec 52228c1f379b2f9f and schedule e35a062ef95efb02.
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
def wukong_fm_0(
    x_ptr, y_ptr, out_ptr,
    N, D, K,
    EVEN_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EVEN_N: tl.constexpr,
    BLOCK_I: tl.constexpr,
    EVEN_I: tl.constexpr,
    BLOCK_D: tl.constexpr,
    EVEN_D: tl.constexpr,
):
    # t_again[b, n, i] = sum(f32(x[b, n, d]) * f32(x[b, i, d]), d)
    # out[b, n, k] = sum(t_again[b, n, i] * f32(y[b, i, k]), i)
    offs_n = tl.arange(0, BLOCK_N)
    mask_n = (offs_n < N) | EVEN_N
    offs_i = tl.arange(0, BLOCK_I)
    mask_i = (offs_i < N) | EVEN_I
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = (offs_d < D) | EVEN_D
    tile = tl.program_id(0)
    b_at = tile
    x = tl.load(
        x_ptr + b_at * N * D + offs_n[:, None] * D + offs_d[None, :],
        mask=mask_n[:, None] & mask_d[None, :],
        other=0.0,
    )
    x_2 = tl.load(
        x_ptr + b_at * N * D + offs_i[:, None] * D + offs_d[None, :],
        mask=mask_i[:, None] & mask_d[None, :],
        other=0.0,
    )
    t_again = tl.dot(x, tl.trans(x_2))
    for k_at in tl.range(0, K, 256, num_stages=1):
        offs_k = k_at + tl.arange(0, 256)
        mask_k = (offs_k < K) | EVEN_K
        out_a = round_tf32(t_again)
        y = tl.load(
            y_ptr + b_at * N * K + offs_i[:, None] * K + offs_k[None, :],
            mask=mask_i[:, None] & mask_k[None, :],
            other=0.0,
        )
        out_b = round_tf32(y.to(tl.float32))
        out = tl.dot(tl.where(mask_i[None, :], out_a, 0.0), out_b, input_precision="tf32")
        out_out = out.to(tl.float16)
        tl.store(
            out_ptr + b_at * N * K + offs_n[:, None] * K + offs_k[None, :],
            out_out,
            mask=mask_n[:, None] & mask_k[None, :],
        )


def launch(x, y, out):
    """Runs the kernel on contiguous tensors of one device; writes out."""
    for tensor in (x, y, out):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    N = x.shape[1]
    D = x.shape[2]
    K = y.shape[2]
    wukong_fm_0[(B,)](
        x, y, out,
        N, D, K,
        EVEN_K=K % 256 == 0,
        BLOCK_N=max(16, triton.next_power_of_2(N)),
        EVEN_N=N == max(16, triton.next_power_of_2(N)),
        BLOCK_I=max(16, triton.next_power_of_2(N)),
        EVEN_I=N == max(16, triton.next_power_of_2(N)),
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


def wukong_fm(x, y):
    """Interact the N embeddings of each sample: x times its transpose times y."""
    _require("x", x, torch.float16, ("B", "N", "D"), x)
    B = x.shape[0]
    N = x.shape[1]
    _require("y", y, torch.float16, (B, N, "K"), x)
    K = y.shape[2]
    out = torch.empty((B, N, K), dtype=torch.float16, device=x.device)
    launch(x, y, out)
    return out
