"""conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.

Generated from spec a9ddf1487adb2982 and schedule 1bcb8f927a9a86fe.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def conv1d_0(
    x_ptr, x_blc_ptr,
    C, L,
    EVEN_X_BLC_L: tl.constexpr,
    EVEN_X_BLC_C: tl.constexpr,
):
    # x_blc[x_blc_b, x_blc_l, x_blc_c] = x[x_blc_b, x_blc_c, x_blc_l]
    tile = tl.program_id(0)
    tiles_x_blc_l = tl.cdiv(L, 64)
    tiles_x_blc_c = tl.cdiv(C, 32)
    x_blc_b_at = tile // (tiles_x_blc_l * tiles_x_blc_c)
    x_blc_l_at = tile // tiles_x_blc_c % tiles_x_blc_l * 64
    x_blc_c_at = tile % tiles_x_blc_c * 32
    offs_x_blc_l = x_blc_l_at + tl.arange(0, 64)
    mask_x_blc_l = (offs_x_blc_l < L) | EVEN_X_BLC_L
    offs_x_blc_c = x_blc_c_at + tl.arange(0, 32)
    mask_x_blc_c = (offs_x_blc_c < C) | EVEN_X_BLC_C
    x = tl.load(
        x_ptr + x_blc_b_at * C * L + offs_x_blc_c[:, None] * L + offs_x_blc_l[None, :],
        mask=mask_x_blc_c[:, None] & mask_x_blc_l[None, :],
        other=0.0,
    )
    x_blc = tl.trans(x)
    tl.store(
        x_blc_ptr + x_blc_b_at * L * C + offs_x_blc_l[:, None] * C + offs_x_blc_c[None, :],
        x_blc,
        mask=mask_x_blc_l[:, None] & mask_x_blc_c[None, :],
    )


@triton.jit
def conv1d_1(
    w_ptr, w_ioc_ptr,
    C, O,
    EVEN_W_IOC_O: tl.constexpr,
    EVEN_W_IOC_C: tl.constexpr,
):
    # w_ioc[w_ioc_i, w_ioc_o, w_ioc_c] = w[w_ioc_o, w_ioc_c, w_ioc_i]
    offs_w_ioc_i = tl.arange(0, 4)
    mask_w_ioc_i = offs_w_ioc_i < 3
    tile = tl.program_id(0)
    tiles_w_ioc_c = tl.cdiv(C, 32)
    w_ioc_o_at = tile // tiles_w_ioc_c * 32
    w_ioc_c_at = tile % tiles_w_ioc_c * 32
    offs_w_ioc_o = w_ioc_o_at + tl.arange(0, 32)
    mask_w_ioc_o = (offs_w_ioc_o < O) | EVEN_W_IOC_O
    offs_w_ioc_c = w_ioc_c_at + tl.arange(0, 32)
    mask_w_ioc_c = (offs_w_ioc_c < C) | EVEN_W_IOC_C
    w = tl.load(
        w_ptr
            + offs_w_ioc_o[:, None, None] * C * 3
            + offs_w_ioc_c[None, :, None] * 3
            + offs_w_ioc_i[None, None, :],
        mask=mask_w_ioc_o[:, None, None]
            & mask_w_ioc_c[None, :, None]
            & mask_w_ioc_i[None, None, :],
        other=0.0,
    )
    w_ioc = tl.permute(w, 2, 0, 1)
    tl.store(
        w_ioc_ptr
            + offs_w_ioc_i[:, None, None] * O * C
            + offs_w_ioc_o[None, :, None] * C
            + offs_w_ioc_c[None, None, :],
        w_ioc,
        mask=mask_w_ioc_i[:, None, None]
            & mask_w_ioc_o[None, :, None]
            & mask_w_ioc_c[None, None, :],
    )


@triton.jit
def conv1d_2(
    bias_ptr, x_blc_ptr, w_ioc_ptr, y_ptr,
    C, L, O,
    EVEN_O: tl.constexpr,
    EVEN_L: tl.constexpr,
    EVEN_C: tl.constexpr,
):
    # acc[b, o, l] = sum(f32(pad(x_blc[b, l - 1, c], 0.0)) * f32(w_ioc[0, o, c])
    #     + f32(pad(x_blc[b, l, c], 0.0)) * f32(w_ioc[1, o, c])
    #     + f32(pad(x_blc[b, l + 1, c], 0.0)) * f32(w_ioc[2, o, c]), c)
    # y[b, o, l] = acc[b, o, l] + f32(bias[o])
    tile = tl.program_id(0)
    tiles_o = tl.cdiv(O, 32)
    tiles_l = tl.cdiv(L, 64)
    b_at = tile // (tiles_o * tiles_l)
    o_at = tile // tiles_l % tiles_o * 32
    l_at = tile % tiles_l * 64
    offs_o = o_at + tl.arange(0, 32)
    mask_o = (offs_o < O) | EVEN_O
    offs_l = l_at + tl.arange(0, 64)
    mask_l = (offs_l < L) | EVEN_L
    acc = tl.full([32, 64], 0.0, tl.float32)
    for c_at in tl.range(0, C, 32, num_stages=1):
        offs_c = c_at + tl.arange(0, 32)
        mask_c = (offs_c < C) | EVEN_C
        x_blc_dim1 = offs_l[:, None] - 1
        x_blc = tl.load(
            x_blc_ptr + b_at * L * C + x_blc_dim1 * C + offs_c[None, :],
            mask=mask_l[:, None] & mask_c[None, :] & (x_blc_dim1 >= 0) & (x_blc_dim1 < L),
            other=0.0,
        )
        w_ioc = tl.load(
            w_ioc_ptr + offs_o[:, None] * C + offs_c[None, :],
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        acc = tl.dot(w_ioc, tl.trans(x_blc), acc)
        x_blc_2 = tl.load(
            x_blc_ptr + b_at * L * C + offs_l[:, None] * C + offs_c[None, :],
            mask=mask_l[:, None] & mask_c[None, :],
            other=0.0,
        )
        w_ioc_2 = tl.load(
            w_ioc_ptr + O * C + offs_o[:, None] * C + offs_c[None, :],
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        acc = tl.dot(w_ioc_2, tl.trans(x_blc_2), acc)
        x_blc_dim1_1 = offs_l[:, None] + 1
        x_blc_3 = tl.load(
            x_blc_ptr + b_at * L * C + x_blc_dim1_1 * C + offs_c[None, :],
            mask=mask_l[:, None] & mask_c[None, :] & (x_blc_dim1_1 >= 0) & (x_blc_dim1_1 < L),
            other=0.0,
        )
        w_ioc_3 = tl.load(
            w_ioc_ptr + 2 * O * C + offs_o[:, None] * C + offs_c[None, :],
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        acc = tl.dot(w_ioc_3, tl.trans(x_blc_3), acc)
    bias = tl.load(bias_ptr + offs_o, mask=mask_o, other=0.0)
    y = (acc + bias[:, None].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr + b_at * O * L + offs_o[:, None] * L + offs_l[None, :],
        y,
        mask=mask_o[:, None] & mask_l[None, :],
    )


def launch(x, w, bias, x_blc, w_ioc, y):
    """Runs the kernel on contiguous tensors of one device; writes x_blc, w_ioc, y."""
    for tensor in (x, w, bias, x_blc, w_ioc, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    O = w.shape[0]
    conv1d_0[(B * triton.cdiv(L, 64) * triton.cdiv(C, 32),)](
        x, x_blc,
        C, L,
        EVEN_X_BLC_L=L % 64 == 0,
        EVEN_X_BLC_C=C % 32 == 0,
        num_warps=4,
        num_stages=1,
    )
    conv1d_1[(triton.cdiv(O, 32) * triton.cdiv(C, 32),)](
        w, w_ioc,
        C, O,
        EVEN_W_IOC_O=O % 32 == 0,
        EVEN_W_IOC_C=C % 32 == 0,
        num_warps=4,
        num_stages=1,
    )
    conv1d_2[(B * triton.cdiv(O, 32) * triton.cdiv(L, 64),)](
        bias, x_blc, w_ioc, y,
        C, L, O,
        EVEN_O=O % 32 == 0,
        EVEN_L=L % 64 == 0,
        EVEN_C=C % 32 == 0,
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


def conv1d(x, w, bias):
    """Convolve each row with kernels of width 3, padded by 1, and add a bias."""
    _require("x", x, torch.float16, ("B", "C", "L"), x)
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    _require("w", w, torch.float16, ("O", C, 3), x)
    O = w.shape[0]
    _require("bias", bias, torch.float16, (O,), x)
    x_blc = torch.empty((B, L, C), dtype=torch.float16, device=x.device)
    w_ioc = torch.empty((3, O, C), dtype=torch.float16, device=x.device)
    y = torch.empty((B, O, L), dtype=torch.float16, device=x.device)
    launch(x, w, bias, x_blc, w_ioc, y)
    return y
