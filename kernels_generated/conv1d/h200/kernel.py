"""conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.

Generated from spec a9ddf1487adb2982 and schedule 489ab08d1211600f.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def conv1d_0(
    w_ptr, w_ioc_ptr,
    C: tl.constexpr,
    O: tl.constexpr,
    EVEN_W_IOC_C: tl.constexpr,
    BLOCK_W_IOC_O: tl.constexpr,
    EVEN_W_IOC_O: tl.constexpr,
):
    # w_ioc[w_ioc_i, w_ioc_o, w_ioc_c] = w[w_ioc_o, w_ioc_c, w_ioc_i]
    offs_w_ioc_o = tl.arange(0, BLOCK_W_IOC_O)
    mask_w_ioc_o = (offs_w_ioc_o < O) | EVEN_W_IOC_O
    tile = tl.program_id(0)
    tiles_w_ioc_i = 3
    w_ioc_c_at = tile // tiles_w_ioc_i * 32
    w_ioc_i_at = tile % tiles_w_ioc_i
    offs_w_ioc_c = w_ioc_c_at + tl.arange(0, 32)
    mask_w_ioc_c = (offs_w_ioc_c < C) | EVEN_W_IOC_C
    w = tl.load(
        w_ptr + w_ioc_i_at + offs_w_ioc_o[:, None] * C * 3 + offs_w_ioc_c[None, :] * 3,
        mask=mask_w_ioc_o[:, None] & mask_w_ioc_c[None, :],
        other=0.0,
    )
    w_ioc = w
    tl.store(
        w_ioc_ptr + w_ioc_i_at * O * C + offs_w_ioc_o[:, None] * C + offs_w_ioc_c[None, :],
        w_ioc,
        mask=mask_w_ioc_o[:, None] & mask_w_ioc_c[None, :],
    )


@triton.jit
def conv1d_1(
    x_ptr, bias_ptr, w_ioc_ptr, y_ptr,
    C: tl.constexpr,
    L: tl.constexpr,
    O: tl.constexpr,
    EVEN_L: tl.constexpr,
    EVEN_C: tl.constexpr,
    BLOCK_O: tl.constexpr,
    EVEN_O: tl.constexpr,
):
    # acc[b, l, o] = sum(f32(pad(x[b, c, l - 1], 0.0)) * f32(w_ioc[0, o, c])
    #     + f32(pad(x[b, c, l], 0.0)) * f32(w_ioc[1, o, c])
    #     + f32(pad(x[b, c, l + 1], 0.0)) * f32(w_ioc[2, o, c]), c)
    # y[b, o, l] = acc[b, l, o] + f32(bias[o])
    offs_o = tl.arange(0, BLOCK_O)
    mask_o = (offs_o < O) | EVEN_O
    bias = tl.load(bias_ptr + offs_o, mask=mask_o, other=0.0)
    tile = tl.program_id(0)
    tiles_l = tl.cdiv(L, 128)
    b_at = tile // tiles_l
    l_at = tile % tiles_l * 128
    offs_l = l_at + tl.arange(0, 128)
    mask_l = (offs_l < L) | EVEN_L
    acc = tl.full([128, BLOCK_O], 0.0, tl.float32)
    for c_at in tl.range(0, C, 32, num_stages=2):
        offs_c = c_at + tl.arange(0, 32)
        mask_c = (offs_c < C) | EVEN_C
        x_dim2 = offs_l[None, :] - 1
        x = tl.load(
            x_ptr + b_at * C * L + offs_c[:, None] * L + x_dim2,
            mask=mask_c[:, None] & mask_l[None, :] & (x_dim2 >= 0) & (x_dim2 < L),
            other=0.0,
        )
        w_ioc = tl.load(
            w_ioc_ptr + offs_o[:, None] * C + offs_c[None, :],
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(x), tl.trans(w_ioc), acc)
        x_2 = tl.load(
            x_ptr + b_at * C * L + offs_c[:, None] * L + offs_l[None, :],
            mask=mask_c[:, None] & mask_l[None, :],
            other=0.0,
        )
        w_ioc_2 = tl.load(
            w_ioc_ptr + O * C + offs_o[:, None] * C + offs_c[None, :],
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(x_2), tl.trans(w_ioc_2), acc)
        x_dim2_1 = offs_l[None, :] + 1
        x_3 = tl.load(
            x_ptr + b_at * C * L + offs_c[:, None] * L + x_dim2_1,
            mask=mask_c[:, None] & mask_l[None, :] & (x_dim2_1 >= 0) & (x_dim2_1 < L),
            other=0.0,
        )
        w_ioc_3 = tl.load(
            w_ioc_ptr + 2 * O * C + offs_o[:, None] * C + offs_c[None, :],
            mask=mask_o[:, None] & mask_c[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(x_3), tl.trans(w_ioc_3), acc)
    y = (tl.trans(acc) + bias[:, None].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr + b_at * O * L + offs_o[:, None] * L + offs_l[None, :],
        y,
        mask=mask_o[:, None] & mask_l[None, :],
    )


def launch(x, w, bias, w_ioc, y):
    """Runs the kernel on contiguous tensors of one device; writes w_ioc, y."""
    for tensor in (x, w, bias, w_ioc, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    O = w.shape[0]
    conv1d_0[(triton.cdiv(C, 32) * 3,)](
        w, w_ioc,
        C, O,
        EVEN_W_IOC_C=C % 32 == 0,
        BLOCK_W_IOC_O=triton.next_power_of_2(O),
        EVEN_W_IOC_O=O == triton.next_power_of_2(O),
        num_warps=4,
        num_stages=1,
    )
    conv1d_1[(B * triton.cdiv(L, 128),)](
        x, bias, w_ioc, y,
        C, L, O,
        EVEN_L=L % 128 == 0,
        EVEN_C=C % 32 == 0,
        BLOCK_O=max(16, triton.next_power_of_2(O)),
        EVEN_O=O == max(16, triton.next_power_of_2(O)),
        num_warps=4,
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
    w_ioc = torch.empty((3, O, C), dtype=torch.float16, device=x.device)
    y = torch.empty((B, O, L), dtype=torch.float16, device=x.device)
    launch(x, w, bias, w_ioc, y)
    return y
