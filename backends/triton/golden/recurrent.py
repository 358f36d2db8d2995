"""lstm: One layer of an LSTM: its states at all steps, and both states at the end.

Generated from spec 2aa1d681b225d99a and schedule 309f4c1eb1d9e90b.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def lstm_0(
    x_ptr, wi_ptr, gx_ptr,
    T, B, I, H,
    EVEN_T: tl.constexpr,
    EVEN_B: tl.constexpr,
    EVEN_J: tl.constexpr,
    EVEN_I: tl.constexpr,
):
    # gx[t, b, g, j] = sum(x[t, b, i] * wi[g, j, i], i)
    offs_g = tl.arange(0, 4)
    tile = tl.program_id(0)
    tiles_b = tl.cdiv(B, 16)
    tiles_j = tl.cdiv(H, 16)
    t_at = tile // (tiles_b * tiles_j) * 4
    b_at = tile // tiles_j % tiles_b * 16
    j_at = tile % tiles_j * 16
    offs_t = t_at + tl.arange(0, 4)
    mask_t = (offs_t < T) | EVEN_T
    offs_b = b_at + tl.arange(0, 16)
    mask_b = (offs_b < B) | EVEN_B
    offs_j = j_at + tl.arange(0, 16)
    mask_j = (offs_j < H) | EVEN_J
    gx = tl.full([4 * 16, 4 * 16], 0.0, tl.float32)
    for i_at in tl.range(0, I, 32, num_stages=1):
        offs_i = i_at + tl.arange(0, 32)
        mask_i = (offs_i < I) | EVEN_I
        x = tl.load(
            x_ptr
                + offs_t[:, None, None] * B * I
                + offs_b[None, :, None] * I
                + offs_i[None, None, :],
            mask=mask_t[:, None, None] & mask_b[None, :, None] & mask_i[None, None, :],
            other=0.0,
        )
        wi = tl.load(
            wi_ptr
                + offs_g[:, None, None] * H * I
                + offs_j[None, :, None] * I
                + offs_i[None, None, :],
            mask=mask_j[None, :, None] & mask_i[None, None, :],
            other=0.0,
        )
        gx = tl.dot(tl.reshape(x, [4 * 16, 32]), tl.trans(tl.reshape(wi, [4 * 16, 32])), gx, input_precision="ieee")
    gx = tl.reshape(gx, [4, 16, 4, 16])
    tl.store(
        gx_ptr
            + offs_t[:, None, None, None] * B * 4 * H
            + offs_b[None, :, None, None] * 4 * H
            + offs_g[None, None, :, None] * H
            + offs_j[None, None, None, :],
        gx,
        mask=mask_t[:, None, None, None]
            & mask_b[None, :, None, None]
            & mask_j[None, None, None, :],
    )


@triton.jit(do_not_specialize=["t_at"])
def lstm_1(
    h0_ptr, wh_ptr, bias_ptr, c0_ptr, gx_ptr, c_ptr, h_ptr,
    T, B, H,
    t_at,
    EVEN_B: tl.constexpr,
    EVEN_J: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # before[t, b, k] = where(t == 0, h0[b, k], pad(h[t - 1, b, k], 0.0))
    # ai[t, b, j] = sum(before[t, b, k] * wh[0, j, k], k)
    # af[t, b, j] = sum(before[t, b, k] * wh[1, j, k], k)
    # ag[t, b, j] = sum(before[t, b, k] * wh[2, j, k], k)
    # ao[t, b, j] = sum(before[t, b, k] * wh[3, j, k], k)
    # put[t, b, j] = sigmoid(ai[t, b, j] + gx[t, b, 0, j] + bias[0, j])
    # kept[t, b, j] = sigmoid(af[t, b, j] + gx[t, b, 1, j] + bias[1, j])
    # new[t, b, j] = tanh(ag[t, b, j] + gx[t, b, 2, j] + bias[2, j])
    # shown[t, b, j] = sigmoid(ao[t, b, j] + gx[t, b, 3, j] + bias[3, j])
    # old[t, b, j] = where(t == 0, c0[b, j], pad(c[t - 1, b, j], 0.0))
    # c[t, b, j] = kept[t, b, j] * old[t, b, j] + put[t, b, j] * new[t, b, j]
    # h[t, b, j] = shown[t, b, j] * tanh(c[t, b, j])
    tile = tl.program_id(0)
    tiles_j = tl.cdiv(H, 16)
    b_at = tile // tiles_j * 16
    j_at = tile % tiles_j * 16
    offs_b = b_at + tl.arange(0, 16)
    mask_b = (offs_b < B) | EVEN_B
    offs_j = j_at + tl.arange(0, 16)
    mask_j = (offs_j < H) | EVEN_J
    ai = tl.full([16, 16], 0.0, tl.float32)
    af = tl.full([16, 16], 0.0, tl.float32)
    ag = tl.full([16, 16], 0.0, tl.float32)
    ao = tl.full([16, 16], 0.0, tl.float32)
    for k_at in tl.range(0, H, 32, num_stages=2):
        offs_k = k_at + tl.arange(0, 32)
        mask_k = (offs_k < H) | EVEN_K
        h0 = tl.load(
            h0_ptr + offs_b[:, None] * H + offs_k[None, :],
            mask=mask_b[:, None] & mask_k[None, :],
            other=0.0,
        )
        h_dim0 = t_at - 1
        h = tl.load(
            h_ptr + h_dim0 * B * H + offs_b[:, None] * H + offs_k[None, :],
            mask=mask_b[:, None] & mask_k[None, :] & (h_dim0 >= 0) & (h_dim0 < T),
            other=0.0,
        )
        before = tl.where(t_at == 0, h0, h)
        wh = tl.load(
            wh_ptr + offs_j[:, None] * H + offs_k[None, :],
            mask=mask_j[:, None] & mask_k[None, :],
            other=0.0,
        )
        ai = tl.dot(tl.where(mask_k[None, :], before, 0.0), tl.trans(wh), ai, input_precision="ieee")
        wh_2 = tl.load(
            wh_ptr + H * H + offs_j[:, None] * H + offs_k[None, :],
            mask=mask_j[:, None] & mask_k[None, :],
            other=0.0,
        )
        af = tl.dot(tl.where(mask_k[None, :], before, 0.0), tl.trans(wh_2), af, input_precision="ieee")
        wh_3 = tl.load(
            wh_ptr + 2 * H * H + offs_j[:, None] * H + offs_k[None, :],
            mask=mask_j[:, None] & mask_k[None, :],
            other=0.0,
        )
        ag = tl.dot(tl.where(mask_k[None, :], before, 0.0), tl.trans(wh_3), ag, input_precision="ieee")
        wh_4 = tl.load(
            wh_ptr + 3 * H * H + offs_j[:, None] * H + offs_k[None, :],
            mask=mask_j[:, None] & mask_k[None, :],
            other=0.0,
        )
        ao = tl.dot(tl.where(mask_k[None, :], before, 0.0), tl.trans(wh_4), ao, input_precision="ieee")
    gx = tl.load(
        gx_ptr + t_at * B * 4 * H + H + offs_b[:, None] * 4 * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    bias = tl.load(bias_ptr + H + offs_j, mask=mask_j, other=0.0)
    kept = tl.sigmoid((af + gx) + bias[None, :])
    c0 = tl.load(
        c0_ptr + offs_b[:, None] * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    c_dim0 = t_at - 1
    c = tl.load(
        c_ptr + c_dim0 * B * H + offs_b[:, None] * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :] & (c_dim0 >= 0) & (c_dim0 < T),
        other=0.0,
    )
    old = tl.where(t_at == 0, c0, c)
    gx_2 = tl.load(
        gx_ptr + t_at * B * 4 * H + offs_b[:, None] * 4 * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    bias_2 = tl.load(bias_ptr + offs_j, mask=mask_j, other=0.0)
    put = tl.sigmoid((ai + gx_2) + bias_2[None, :])
    gx_3 = tl.load(
        gx_ptr + t_at * B * 4 * H + 2 * H + offs_b[:, None] * 4 * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    bias_3 = tl.load(bias_ptr + 2 * H + offs_j, mask=mask_j, other=0.0)
    new = libdevice.tanh((ag + gx_3) + bias_3[None, :])
    c_2 = (kept * old) + (put * new)
    tl.store(
        c_ptr + t_at * B * H + offs_b[:, None] * H + offs_j[None, :],
        c_2,
        mask=mask_b[:, None] & mask_j[None, :],
    )
    gx_4 = tl.load(
        gx_ptr + t_at * B * 4 * H + 3 * H + offs_b[:, None] * 4 * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    bias_4 = tl.load(bias_ptr + 3 * H + offs_j, mask=mask_j, other=0.0)
    shown = tl.sigmoid((ao + gx_4) + bias_4[None, :])
    h_2 = shown * libdevice.tanh(c_2)
    tl.store(
        h_ptr + t_at * B * H + offs_b[:, None] * H + offs_j[None, :],
        h_2,
        mask=mask_b[:, None] & mask_j[None, :],
    )


@triton.jit
def lstm_2(
    c_ptr, h_ptr, hn_ptr, cn_ptr,
    T, B, H,
    EVEN_B: tl.constexpr,
    EVEN_J: tl.constexpr,
):
    tile = tl.program_id(0)
    tiles_j = tl.cdiv(H, 16)
    b_at = tile // tiles_j * 16
    j_at = tile % tiles_j * 16
    offs_b = b_at + tl.arange(0, 16)
    mask_b = (offs_b < B) | EVEN_B
    offs_j = j_at + tl.arange(0, 16)
    mask_j = (offs_j < H) | EVEN_J
    h = tl.load(
        h_ptr + (T - 1) * B * H + offs_b[:, None] * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    tl.store(
        hn_ptr + offs_b[:, None] * H + offs_j[None, :],
        h,
        mask=mask_b[:, None] & mask_j[None, :],
    )
    c = tl.load(
        c_ptr + (T - 1) * B * H + offs_b[:, None] * H + offs_j[None, :],
        mask=mask_b[:, None] & mask_j[None, :],
        other=0.0,
    )
    tl.store(
        cn_ptr + offs_b[:, None] * H + offs_j[None, :],
        c,
        mask=mask_b[:, None] & mask_j[None, :],
    )


def launch(x, wi, wh, bias, h0, c0, gx, c, h, hn, cn):
    """Runs the kernel on contiguous tensors of one device; writes gx, c, h, hn, cn."""
    for tensor in (x, wi, wh, bias, h0, c0, gx, c, h, hn, cn):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    T = x.shape[0]
    B = x.shape[1]
    I = x.shape[2]
    H = wi.shape[1]
    lstm_0[(triton.cdiv(T, 4) * triton.cdiv(B, 16) * triton.cdiv(H, 16),)](
        x, wi, gx,
        T, B, I, H,
        EVEN_T=T % 4 == 0,
        EVEN_B=B % 16 == 0,
        EVEN_J=H % 16 == 0,
        EVEN_I=I % 32 == 0,
        num_warps=4,
        num_stages=1,
    )
    for t_at in range(T):
        lstm_1[(triton.cdiv(B, 16) * triton.cdiv(H, 16),)](
            h0, wh, bias, c0, gx, c, h,
            T, B, H,
            t_at,
            EVEN_B=B % 16 == 0,
            EVEN_J=H % 16 == 0,
            EVEN_K=H % 32 == 0,
            num_warps=4,
            num_stages=2,
        )
    lstm_2[(triton.cdiv(B, 16) * triton.cdiv(H, 16),)](
        c, h, hn, cn,
        T, B, H,
        EVEN_B=B % 16 == 0,
        EVEN_J=H % 16 == 0,
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


def lstm(x, wi, wh, bias, h0, c0):
    """One layer of an LSTM: its states at all steps, and both states at the end."""
    _require("x", x, torch.float32, ("T", "B", "I"), x)
    T = x.shape[0]
    B = x.shape[1]
    I = x.shape[2]
    _require("wi", wi, torch.float32, (4, "H", I), x)
    H = wi.shape[1]
    _require("wh", wh, torch.float32, (4, H, H), x)
    _require("bias", bias, torch.float32, (4, H), x)
    _require("h0", h0, torch.float32, (B, H), x)
    _require("c0", c0, torch.float32, (B, H), x)
    gx = torch.empty((T, B, 4, H), dtype=torch.float32, device=x.device)
    c = torch.empty((T, B, H), dtype=torch.float32, device=x.device)
    h = torch.empty((T, B, H), dtype=torch.float32, device=x.device)
    hn = torch.empty((B, H), dtype=torch.float32, device=x.device)
    cn = torch.empty((B, H), dtype=torch.float32, device=x.device)
    launch(x, wi, wh, bias, h0, c0, gx, c, h, hn, cn)
    return h, hn, cn
