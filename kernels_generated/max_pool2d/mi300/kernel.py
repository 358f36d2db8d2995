"""max_pool2d: Take the maximum of every 3x3 window, two steps apart, padded by 1.

Generated from spec 8157973b6de032a1 and schedule aea7442056861ef9.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def larger(a, b):
    """The larger of two numbers, NaN where one of them is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def max_pool2d_0(
    x_ptr, y_ptr,
    C, H, W, P, Q,
    EVEN_C: tl.constexpr,
    EVEN_P: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    EVEN_Q: tl.constexpr,
):
    # y[n, c, p, q] = max(pad(x[n, c, 2 * p + i - 1, 2 * q + j - 1], -inf), i=3, j=3)
    offs_q = tl.arange(0, BLOCK_Q)
    mask_q = (offs_q < Q) | EVEN_Q
    tile = tl.program_id(0)
    tiles_c = tl.cdiv(C, 2)
    tiles_p = tl.cdiv(P, 16)
    n_at = tile // (tiles_c * tiles_p)
    c_at = tile // tiles_p % tiles_c * 2
    p_at = tile % tiles_p * 16
    offs_c = c_at + tl.arange(0, 2)
    mask_c = (offs_c < C) | EVEN_C
    offs_p = p_at + tl.arange(0, 16)
    mask_p = (offs_p < P) | EVEN_P
    y = tl.full([2, 16, BLOCK_Q], float("-inf"), tl.float32)
    for i_at in range(0, 3):
        for j_at in tl.static_range(0, 3):
            x_dim2 = offs_p[None, :, None] * 2 + i_at - 1
            x_dim3 = offs_q[None, None, :] * 2 + j_at - 1
            x = tl.load(
                x_ptr + n_at * C * H * W + offs_c[:, None, None] * H * W + x_dim2 * W + x_dim3,
                mask=mask_c[:, None, None]
                    & mask_p[None, :, None]
                    & mask_q[None, None, :]
                    & (x_dim2 >= 0)
                    & (x_dim2 < H)
                    & (x_dim3 >= 0)
                    & (x_dim3 < W),
                other=float("-inf"),
            )
            y = larger(y, x)
    tl.store(
        y_ptr
            + n_at * C * P * Q
            + offs_c[:, None, None] * P * Q
            + offs_p[None, :, None] * Q
            + offs_q[None, None, :],
        y,
        mask=mask_c[:, None, None] & mask_p[None, :, None] & mask_q[None, None, :],
    )


def launch(x, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    N = x.shape[0]
    C = x.shape[1]
    H = x.shape[2]
    W = x.shape[3]
    P = (H - 1) // 2 + 1
    Q = (W - 1) // 2 + 1
    max_pool2d_0[(N * triton.cdiv(C, 2) * triton.cdiv(P, 16),)](
        x, y,
        C, H, W, P, Q,
        EVEN_C=C % 2 == 0,
        EVEN_P=P % 16 == 0,
        BLOCK_Q=triton.next_power_of_2(Q),
        EVEN_Q=Q == triton.next_power_of_2(Q),
        num_warps=1,
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


def max_pool2d(x):
    """Take the maximum of every 3x3 window, two steps apart, padded by 1."""
    _require("x", x, torch.float32, ("N", "C", "H", "W"), x)
    N = x.shape[0]
    C = x.shape[1]
    H = x.shape[2]
    W = x.shape[3]
    P = (H - 1) // 2 + 1
    Q = (W - 1) // 2 + 1
    y = torch.empty((N, C, P, Q), dtype=torch.float32, device=x.device)
    launch(x, y)
    return y
