"""conv1d: Convolve each row with kernels of width 3, padded by 1, and add a bias.

Generated from spec a9ddf1487adb2982 and schedule 5468d2af13686109.
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
    tiles_x_blc_l = tl.cdiv(L, 128)
    tiles_x_blc_c = tl.cdiv(C, 16)
    x_blc_b_at = tile // (tiles_x_blc_l * tiles_x_blc_c)
    x_blc_l_at = tile // tiles_x_blc_c % tiles_x_blc_l * 128
    x_blc_c_at = tile % tiles_x_blc_c * 16
    offs_x_blc_l = x_blc_l_at + tl.arange(0, 128)
    in_x_blc_l = (offs_x_blc_l < L) | EVEN_X_BLC_L
    offs_x_blc_c = x_blc_c_at + tl.arange(0, 16)
    in_x_blc_c = (offs_x_blc_c < C) | EVEN_X_BLC_C
    x = tl.load(
        x_ptr + x_blc_b_at * C * L + offs_x_blc_c[:, None] * L + offs_x_blc_l[None, :],
        mask=in_x_blc_c[:, None] & in_x_blc_l[None, :],
        other=0.0,
    )
    x_blc = tl.trans(x)
    tl.store(
        x_blc_ptr + x_blc_b_at * L * C + offs_x_blc_l[:, None] * C + offs_x_blc_c[None, :],
        x_blc,
        mask=in_x_blc_l[:, None] & in_x_blc_c[None, :],
    )


@triton.jit
def conv1d_1(
    w_ptr, w_ico_ptr,
    C, O,
    EVEN_W_ICO_C: tl.constexpr,
    BLOCK_W_ICO_O: tl.constexpr,
    EVEN_W_ICO_O: tl.constexpr,
):
    # w_ico[w_ico_i, w_ico_c, w_ico_o] = w[w_ico_o, w_ico_c, w_ico_i]
    offs_w_ico_o = tl.arange(0, BLOCK_W_ICO_O)
    in_w_ico_o = (offs_w_ico_o < O) | EVEN_W_ICO_O
    tile = tl.program_id(0)
    tiles_w_ico_i = 3
    w_ico_c_at = tile // tiles_w_ico_i * 16
    w_ico_i_at = tile % tiles_w_ico_i
    offs_w_ico_c = w_ico_c_at + tl.arange(0, 16)
    in_w_ico_c = (offs_w_ico_c < C) | EVEN_W_ICO_C
    w = tl.load(
        w_ptr + w_ico_i_at + offs_w_ico_o[:, None] * C * 3 + offs_w_ico_c[None, :] * 3,
        mask=in_w_ico_o[:, None] & in_w_ico_c[None, :],
        other=0.0,
    )
    w_ico = tl.trans(w)
    tl.store(
        w_ico_ptr + w_ico_i_at * C * O + offs_w_ico_c[:, None] * O + offs_w_ico_o[None, :],
        w_ico,
        mask=in_w_ico_c[:, None] & in_w_ico_o[None, :],
    )


@triton.jit
def conv1d_2(
    bias_ptr, x_blc_ptr, w_ico_ptr, y_ptr,
    C, L, O,
    EVEN_L: tl.constexpr,
    EVEN_C: tl.constexpr,
    BLOCK_O: tl.constexpr,
    EVEN_O: tl.constexpr,
):
    # acc[b, o, l] = sum(f32(pad(x_blc[b, l - 1, c], 0.0)) * f32(w_ico[0, c, o])
    #     + f32(pad(x_blc[b, l, c], 0.0)) * f32(w_ico[1, c, o])
    #     + f32(pad(x_blc[b, l + 1, c], 0.0)) * f32(w_ico[2, c, o]), c)
    # y[b, o, l] = acc[b, o, l] + f32(bias[o])
    offs_o = tl.arange(0, BLOCK_O)
    in_o = (offs_o < O) | EVEN_O
    bias = tl.load(bias_ptr + offs_o, mask=in_o, other=0.0)
    tile = tl.program_id(0)
    tiles_l = tl.cdiv(L, 128)
    b_at = tile // tiles_l
    l_at = tile % tiles_l * 128
    offs_l = l_at + tl.arange(0, 128)
    in_l = (offs_l < L) | EVEN_L
    acc = tl.full([BLOCK_O, 128], 0.0, tl.float32)
    for c_at in tl.range(0, C, 16, num_stages=3):
        offs_c = c_at + tl.arange(0, 16)
        in_c = (offs_c < C) | EVEN_C
        x_blc_dim1 = offs_l[:, None] - 1
        x_blc = tl.load(
            x_blc_ptr + b_at * L * C + x_blc_dim1 * C + offs_c[None, :],
            mask=in_l[:, None] & in_c[None, :] & (x_blc_dim1 >= 0) & (x_blc_dim1 < L),
            other=0.0,
        )
        w_ico = tl.load(
            w_ico_ptr + offs_c[:, None] * O + offs_o[None, :],
            mask=in_c[:, None] & in_o[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(w_ico), tl.trans(x_blc), acc)
        x_blc_2 = tl.load(
            x_blc_ptr + b_at * L * C + offs_l[:, None] * C + offs_c[None, :],
            mask=in_l[:, None] & in_c[None, :],
            other=0.0,
        )
        w_ico_2 = tl.load(
            w_ico_ptr + C * O + offs_c[:, None] * O + offs_o[None, :],
            mask=in_c[:, None] & in_o[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(w_ico_2), tl.trans(x_blc_2), acc)
        x_blc_dim1_1 = offs_l[:, None] + 1
        x_blc_3 = tl.load(
            x_blc_ptr + b_at * L * C + x_blc_dim1_1 * C + offs_c[None, :],
            mask=in_l[:, None] & in_c[None, :] & (x_blc_dim1_1 >= 0) & (x_blc_dim1_1 < L),
            other=0.0,
        )
        w_ico_3 = tl.load(
            w_ico_ptr + 2 * C * O + offs_c[:, None] * O + offs_o[None, :],
            mask=in_c[:, None] & in_o[None, :],
            other=0.0,
        )
        acc = tl.dot(tl.trans(w_ico_3), tl.trans(x_blc_3), acc)
    y = (acc + bias[:, None].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr + b_at * O * L + offs_o[:, None] * L + offs_l[None, :],
        y,
        mask=in_o[:, None] & in_l[None, :],
    )


def launch(x, w, bias, x_blc, w_ico, y):
    """Runs the kernel on contiguous tensors of one device; writes x_blc, w_ico, y."""
    for tensor in (x, w, bias, x_blc, w_ico, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    O = w.shape[0]
    conv1d_0[(B * triton.cdiv(L, 128) * triton.cdiv(C, 16),)](
        x, x_blc,
        C, L,
        EVEN_X_BLC_L=L % 128 == 0,
        EVEN_X_BLC_C=C % 16 == 0,
        num_warps=4,
        num_stages=1,
    )
    conv1d_1[(triton.cdiv(C, 16) * 3,)](
        w, w_ico,
        C, O,
        EVEN_W_ICO_C=C % 16 == 0,
        BLOCK_W_ICO_O=triton.next_power_of_2(O),
        EVEN_W_ICO_O=O == triton.next_power_of_2(O),
        num_warps=4,
        num_stages=1,
    )
    conv1d_2[(B * triton.cdiv(L, 128),)](
        bias, x_blc, w_ico, y,
        C, L, O,
        EVEN_L=L % 128 == 0,
        EVEN_C=C % 16 == 0,
        BLOCK_O=max(16, triton.next_power_of_2(O)),
        EVEN_O=O == max(16, triton.next_power_of_2(O)),
        num_warps=8,
        num_stages=3,
    )


def conv1d(x, w, bias):
    """Convolve each row with kernels of width 3, padded by 1, and add a bias."""
    B = x.shape[0]
    C = x.shape[1]
    L = x.shape[2]
    O = w.shape[0]
    x_blc = torch.empty((B, L, C), dtype=torch.float16, device=x.device)
    w_ico = torch.empty((3, C, O), dtype=torch.float16, device=x.device)
    y = torch.empty((B, O, L), dtype=torch.float16, device=x.device)
    launch(x, w, bias, x_blc, w_ico, y)
    return y
