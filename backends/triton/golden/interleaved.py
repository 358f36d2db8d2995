"""interleaved: Convolve with the filters of all phases of a transposed convolution, and store them in place.

Generated from spec b74a4ba435825fe6 and schedule 2a26e16efca7af3e.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def interleaved_0(
    x_ptr, w_ptr, p_ptr, y_ptr,
    w_desc, x_desc,
    B, Q,
    EVEN_B: tl.constexpr,
    BULK_W: tl.constexpr,
    BULK_X: tl.constexpr,
):
    # c[b, o, i, g, j, h] = sum(f32(x[b, i + r, j + s, k]) * f32(w[r, s, o, g, h, k]), k, r, s)
    # y[b, o, i, g, j, h] = c[b, o, i, g, j, h] + p[o]
    offs_o = tl.arange(0, 32)
    offs_g = tl.arange(0, 2)
    offs_h = tl.arange(0, 2)
    offs_k = tl.arange(0, 32)
    p = tl.load(p_ptr + offs_o)
    tile = tl.program_id(0)
    tiles_i = 2
    tiles_j = tl.cdiv(20, 16)
    b_at = tile // (tiles_i * tiles_j) * 4
    i_at = tile // tiles_j % tiles_i
    j_at = tile % tiles_j * 16
    offs_b = b_at + tl.arange(0, 4)
    mask_b = (offs_b < B) | EVEN_B
    offs_j = j_at + tl.arange(0, 16)
    mask_j = offs_j < 20
    c = tl.full([4 * 16, 32 * 2 * 2], 0.0, tl.float32)
    for s_step in tl.range(0, 4, num_stages=3):
        r_at = s_step // 2
        s_at = s_step % 2
        if BULK_W:
            w = tl.reshape(w_desc.load([r_at * 2 + s_at, 0, 0]), [32, 2, 2, 32])
        else:
            w = tl.load(
                w_ptr
                    + r_at * 2 * 32 * 2 * 2 * 32
                    + s_at * 32 * 2 * 2 * 32
                    + offs_o[:, None, None, None] * 2 * 2 * 32
                    + offs_g[None, :, None, None] * 2 * 32
                    + offs_h[None, None, :, None] * 32
                    + offs_k[None, None, None, :],
            )
        if BULK_X:
            x = tl.reshape(x_desc.load([b_at, i_at + r_at, j_at + s_at, 0]), [4, 16, 32])
        else:
            x = tl.load(
                x_ptr
                    + (i_at + r_at) * Q * 32
                    + s_at * 32
                    + offs_b[:, None, None] * 3 * Q * 32
                    + offs_j[None, :, None] * 32
                    + offs_k[None, None, :],
                mask=mask_b[:, None, None] & mask_j[None, :, None],
                other=0.0,
            )
        c = tl.dot(tl.reshape(x, [4 * 16, 32]), tl.trans(tl.reshape(w, [32 * 2 * 2, 32])), c, input_precision="tf32")
    c = tl.permute(tl.reshape(c, [4, 16, 32, 2, 2]), 0, 2, 3, 1, 4)
    y = c + p[None, :, None, None, None]
    j_h_at = j_at * 2
    offs_j_h = j_h_at + tl.arange(0, 32)
    mask_j_h = offs_j_h < 40
    tl.store(
        y_ptr
            + i_at * 2 * 40
            + offs_b[:, None, None, None] * 32 * 2 * 2 * 40
            + offs_o[None, :, None, None] * 2 * 2 * 40
            + offs_g[None, None, :, None] * 40
            + offs_j_h[None, None, None, :],
        tl.reshape(y, [4, 32, 2, 32]),
        mask=mask_b[:, None, None, None] & mask_j_h[None, None, None, :],
    )


def launch(x, w, p, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, w, p, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    Q = x.shape[2]
    interleaved_0[(triton.cdiv(B, 4) * 2 * triton.cdiv(20, 16),)](
        x, w, p, y,
        TensorDescriptor(w, [2 * 2, 32 * 2 * 2, 32], [32 * 2 * 2 * 32, 32, 1], [1, 128, 32]) if 32 % 4 == 0 else None,
        TensorDescriptor(x, [B, 3, Q, 32], [3 * Q * 32, Q * 32, 32, 1], [4, 1, 16, 32]) if 32 % 4 == 0 else None,
        B, Q,
        EVEN_B=B % 4 == 0,
        BULK_W=32 % 4 == 0,
        BULK_X=32 % 4 == 0,
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


def interleaved(x, w, p):
    """Convolve with the filters of all phases of a transposed convolution, and store them in place."""
    _require("x", x, torch.float32, ("B", 3, "Q", 32), x)
    B = x.shape[0]
    _require("w", w, torch.float32, (2, 2, 32, 2, 2, 32), x)
    _require("p", p, torch.float32, (32,), x)
    y = torch.empty((B, 32, 2, 2, 20, 2), dtype=torch.float32, device=x.device)
    launch(x, w, p, y)
    return y
