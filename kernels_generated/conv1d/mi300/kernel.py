"""conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.

Generated from spec a9ddf1487adb2982 and schedule 29c205dfdc8f5663.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def conv1d_0(
    x_ptr, w_ptr, bias_ptr, y_ptr,
    C, L, O,
    EVEN_C: tl.constexpr,
    BLOCK_O: tl.constexpr,
    EVEN_O: tl.constexpr,
    BLOCK_L: tl.constexpr,
    EVEN_L: tl.constexpr,
):
    # acc[b, o, l] = sum(f32(pad(x[b, c, l + i - 1], 0.0)) * f32(w[o, c, i]), c, i)
    # y[b, o, l] = acc[b, o, l] + f32(bias[o])
    offs_o = tl.arange(0, BLOCK_O)
    mask_o = (offs_o < O) | EVEN_O
    offs_l = tl.arange(0, BLOCK_L)
    mask_l = (offs_l < L) | EVEN_L
    bias = tl.load(bias_ptr + offs_o, mask=mask_o, other=0.0)
    tile = tl.program_id(0)
    b_at = tile
    acc = tl.full([BLOCK_O, BLOCK_L], 0.0, tl.float32)
    for i_step in tl.range(0, tl.cdiv(C, 32) * 3, num_stages=2):
        c_at = i_step // 3 * 32
        i_at = i_step % 3
        offs_c = c_at + tl.arange(0, 32)
        mask_c = (offs_c < C) | EVEN_C
        w = tl.load(
            w_ptr + i_at + offs_o[:, None] * C * 3 + offs_c[None, :] * 3,
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        x_dim2 = offs_l[None, :] + i_at - 1
        x = tl.load(
            x_ptr + b_at * C * L + offs_c[:, None] * L + x_dim2,
            mask=mask_c[:, None] & mask_l[None, :] & (x_dim2 >= 0) & (x_dim2 < L),
            other=0.0,
        )
        acc = tl.dot(w, x, acc)
    y = (acc + bias[:, None].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr + b_at * O * L + offs_o[:, None] * L + offs_l[None, :],
        y,
        mask=mask_o[:, None] & mask_l[None, :],
    )


def launch(x, w, bias, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, w, bias, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    O = w.shape[0]
    conv1d_0[(B,)](
        x, w, bias, y,
        C, L, O,
        EVEN_C=C % 32 == 0,
        BLOCK_O=max(16, triton.next_power_of_2(O)),
        EVEN_O=O == max(16, triton.next_power_of_2(O)),
        BLOCK_L=max(16, triton.next_power_of_2(L)),
        EVEN_L=L == max(16, triton.next_power_of_2(L)),
        num_warps=8,
        num_stages=2,
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


def conv1d(x, w, bias):
    """Convolve each row with kernels of width 3, padded by 1, and add a bias."""
    _require("x", x, torch.float16, ("B", "C", "L"), x)
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    _require("w", w, torch.float16, ("O", C, 3), x)
    O = w.shape[0]
    _require("bias", bias, torch.float16, (O,), x)
    y = torch.empty((B, O, L), dtype=torch.float16, device=x.device)
    launch(x, w, bias, y)
    return y
