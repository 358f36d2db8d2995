"""conv2d: Convolve images with 3x3 kernels, padded by 1, and add a bias.

Generated from spec c28c2ece5cecb63c and schedule 13f46c184c43245a.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def conv2d_0(
    x_ptr, w_ptr, bias_ptr, y_ptr,
    C, H, W, O,
    EVEN_P: tl.constexpr,
    BLOCK_O: tl.constexpr,
    EVEN_O: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    EVEN_Q: tl.constexpr,
    BLOCK_C: tl.constexpr,
    EVEN_C: tl.constexpr,
):
    # acc[b, o, p, q] = sum(f32(pad(x[b, c, p + i - 1, q + j - 1], 0.0)) * f32(w[o, c, i, j]), c,
    #     i, j)
    # y[b, o, p, q] = acc[b, o, p, q] + f32(bias[o])
    offs_o = tl.arange(0, BLOCK_O)
    mask_o = (offs_o < O) | EVEN_O
    offs_q = tl.arange(0, BLOCK_Q)
    mask_q = (offs_q < W) | EVEN_Q
    offs_c = tl.arange(0, BLOCK_C)
    mask_c = (offs_c < C) | EVEN_C
    bias = tl.load(bias_ptr + offs_o, mask=mask_o, other=0.0)
    tile = tl.program_id(0)
    tiles_p = tl.cdiv(H, 4)
    b_at = tile // tiles_p
    p_at = tile % tiles_p * 4
    offs_p = p_at + tl.arange(0, 4)
    mask_p = (offs_p < H) | EVEN_P
    acc = tl.full([BLOCK_O, 4 * BLOCK_Q], 0.0, tl.float32)
    for j_step in tl.range(0, 9, num_stages=3):
        i_at = j_step // 3
        j_at = j_step % 3
        w = tl.load(
            w_ptr + i_at * 3 + j_at + offs_o[:, None] * C * 3 * 3 + offs_c[None, :] * 3 * 3,
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        x_dim2 = offs_p[None, :, None] + i_at - 1
        x_dim3 = offs_q[None, None, :] + j_at - 1
        x = tl.load(
            x_ptr + b_at * C * H * W + offs_c[:, None, None] * H * W + x_dim2 * W + x_dim3,
            mask=mask_c[:, None, None]
                & mask_p[None, :, None]
                & mask_q[None, None, :]
                & (x_dim2 >= 0)
                & (x_dim2 < H)
                & (x_dim3 >= 0)
                & (x_dim3 < W),
            other=0.0,
        )
        acc = tl.dot(w, tl.reshape(x, [BLOCK_C, 4 * BLOCK_Q]), acc)
    acc = tl.reshape(acc, [BLOCK_O, 4, BLOCK_Q])
    y = (acc + bias[:, None, None].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr
            + b_at * O * H * W
            + offs_o[:, None, None] * H * W
            + offs_p[None, :, None] * W
            + offs_q[None, None, :],
        y,
        mask=mask_o[:, None, None] & mask_p[None, :, None] & mask_q[None, None, :],
    )


def launch(x, w, bias, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, w, bias, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    C = x.shape[1]
    H = x.shape[2]
    W = x.shape[3]
    O = w.shape[0]
    conv2d_0[(B * triton.cdiv(H, 4),)](
        x, w, bias, y,
        C, H, W, O,
        EVEN_P=H % 4 == 0,
        BLOCK_O=max(16, triton.next_power_of_2(O)),
        EVEN_O=O == max(16, triton.next_power_of_2(O)),
        BLOCK_Q=max(4, triton.next_power_of_2(W)),
        EVEN_Q=W == max(4, triton.next_power_of_2(W)),
        BLOCK_C=max(16, triton.next_power_of_2(C)),
        EVEN_C=C == max(16, triton.next_power_of_2(C)),
        num_warps=1,
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


def conv2d(x, w, bias):
    """Convolve images with 3x3 kernels, padded by 1, and add a bias."""
    _require("x", x, torch.float16, ("B", "C", "H", "W"), x)
    B = x.shape[0]
    C = x.shape[1]
    H = x.shape[2]
    W = x.shape[3]
    _require("w", w, torch.float16, ("O", C, 3, 3), x)
    O = w.shape[0]
    _require("bias", bias, torch.float16, (O,), x)
    y = torch.empty((B, O, H, W), dtype=torch.float16, device=x.device)
    launch(x, w, bias, y)
    return y
