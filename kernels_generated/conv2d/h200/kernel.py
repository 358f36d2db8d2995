"""conv2d: Convolve images with 3x3 kernels, padded by 1, and add a bias.

Generated from spec c28c2ece5cecb63c and schedule 8d866633a6ca9544.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def conv2d_0(
    x_ptr, x_bpqc_ptr,
    C, H, W,
    EVEN_X_BPQC_P: tl.constexpr,
    BLOCK_X_BPQC_Q: tl.constexpr,
    EVEN_X_BPQC_Q: tl.constexpr,
    BLOCK_X_BPQC_C: tl.constexpr,
    EVEN_X_BPQC_C: tl.constexpr,
):
    # x_bpqc[x_bpqc_b, x_bpqc_p, x_bpqc_q, x_bpqc_c] = x[x_bpqc_b, x_bpqc_c, x_bpqc_p, x_bpqc_q]
    offs_x_bpqc_q = tl.arange(0, BLOCK_X_BPQC_Q)
    mask_x_bpqc_q = (offs_x_bpqc_q < W) | EVEN_X_BPQC_Q
    offs_x_bpqc_c = tl.arange(0, BLOCK_X_BPQC_C)
    mask_x_bpqc_c = (offs_x_bpqc_c < C) | EVEN_X_BPQC_C
    tile = tl.program_id(0)
    tiles_x_bpqc_p = tl.cdiv(H, 4)
    x_bpqc_b_at = tile // tiles_x_bpqc_p
    x_bpqc_p_at = tile % tiles_x_bpqc_p * 4
    offs_x_bpqc_p = x_bpqc_p_at + tl.arange(0, 4)
    mask_x_bpqc_p = (offs_x_bpqc_p < H) | EVEN_X_BPQC_P
    x = tl.load(
        x_ptr
            + x_bpqc_b_at * C * H * W
            + offs_x_bpqc_c[:, None, None] * H * W
            + offs_x_bpqc_p[None, :, None] * W
            + offs_x_bpqc_q[None, None, :],
        mask=mask_x_bpqc_c[:, None, None]
            & mask_x_bpqc_p[None, :, None]
            & mask_x_bpqc_q[None, None, :],
        other=0.0,
    )
    x_bpqc = tl.permute(x, 1, 2, 0)
    tl.store(
        x_bpqc_ptr
            + x_bpqc_b_at * H * W * C
            + offs_x_bpqc_p[:, None, None] * W * C
            + offs_x_bpqc_q[None, :, None] * C
            + offs_x_bpqc_c[None, None, :],
        x_bpqc,
        mask=mask_x_bpqc_p[:, None, None]
            & mask_x_bpqc_q[None, :, None]
            & mask_x_bpqc_c[None, None, :],
    )


@triton.jit
def conv2d_1(
    w_ptr, w_ijoc_ptr,
    C, O,
    BLOCK_W_IJOC_O: tl.constexpr,
    EVEN_W_IJOC_O: tl.constexpr,
    BLOCK_W_IJOC_C: tl.constexpr,
    EVEN_W_IJOC_C: tl.constexpr,
):
    # w_ijoc[w_ijoc_i, w_ijoc_j, w_ijoc_o, w_ijoc_c] = w[w_ijoc_o, w_ijoc_c, w_ijoc_i, w_ijoc_j]
    offs_w_ijoc_o = tl.arange(0, BLOCK_W_IJOC_O)
    mask_w_ijoc_o = (offs_w_ijoc_o < O) | EVEN_W_IJOC_O
    offs_w_ijoc_c = tl.arange(0, BLOCK_W_IJOC_C)
    mask_w_ijoc_c = (offs_w_ijoc_c < C) | EVEN_W_IJOC_C
    tile = tl.program_id(0)
    tiles_w_ijoc_j = 3
    w_ijoc_i_at = tile // tiles_w_ijoc_j
    w_ijoc_j_at = tile % tiles_w_ijoc_j
    w = tl.load(
        w_ptr
            + w_ijoc_i_at * 3
            + w_ijoc_j_at
            + offs_w_ijoc_o[:, None] * C * 3 * 3
            + offs_w_ijoc_c[None, :] * 3 * 3,
        mask=mask_w_ijoc_o[:, None] & mask_w_ijoc_c[None, :],
        other=0.0,
    )
    w_ijoc = w
    tl.store(
        w_ijoc_ptr
            + w_ijoc_i_at * 3 * O * C
            + w_ijoc_j_at * O * C
            + offs_w_ijoc_o[:, None] * C
            + offs_w_ijoc_c[None, :],
        w_ijoc,
        mask=mask_w_ijoc_o[:, None] & mask_w_ijoc_c[None, :],
    )


@triton.jit
def conv2d_2(
    bias_ptr, x_bpqc_ptr, w_ijoc_ptr, y_ptr,
    C, H, W, O,
    BLOCK_O: tl.constexpr,
    EVEN_O: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    EVEN_Q: tl.constexpr,
    BLOCK_C: tl.constexpr,
    EVEN_C: tl.constexpr,
):
    # acc[b, o, p, q] = sum(f32(pad(x_bpqc[b, p - 1, q - 1, c], 0.0)) * f32(w_ijoc[0, 0, o, c])
    #     + f32(pad(x_bpqc[b, p - 1, q, c], 0.0)) * f32(w_ijoc[0, 1, o, c])
    #     + f32(pad(x_bpqc[b, p - 1, q + 1, c], 0.0)) * f32(w_ijoc[0, 2, o, c])
    #     + (f32(pad(x_bpqc[b, p, q - 1, c], 0.0)) * f32(w_ijoc[1, 0, o, c])
    #     + f32(pad(x_bpqc[b, p, q, c], 0.0)) * f32(w_ijoc[1, 1, o, c])
    #     + f32(pad(x_bpqc[b, p, q + 1, c], 0.0)) * f32(w_ijoc[1, 2, o, c]))
    #     + (f32(pad(x_bpqc[b, p + 1, q - 1, c], 0.0)) * f32(w_ijoc[2, 0, o, c])
    #     + f32(pad(x_bpqc[b, p + 1, q, c], 0.0)) * f32(w_ijoc[2, 1, o, c])
    #     + f32(pad(x_bpqc[b, p + 1, q + 1, c], 0.0)) * f32(w_ijoc[2, 2, o, c])), c)
    # y[b, o, p, q] = acc[b, o, p, q] + f32(bias[o])
    offs_o = tl.arange(0, BLOCK_O)
    mask_o = (offs_o < O) | EVEN_O
    offs_q = tl.arange(0, BLOCK_Q)
    mask_q = (offs_q < W) | EVEN_Q
    offs_c = tl.arange(0, BLOCK_C)
    mask_c = (offs_c < C) | EVEN_C
    w_ijoc = tl.load(
        w_ijoc_ptr + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_2 = tl.load(
        w_ijoc_ptr + O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_3 = tl.load(
        w_ijoc_ptr + 2 * O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_4 = tl.load(
        w_ijoc_ptr + 3 * O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_5 = tl.load(
        w_ijoc_ptr + 3 * O * C + O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_6 = tl.load(
        w_ijoc_ptr + 3 * O * C + 2 * O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_7 = tl.load(
        w_ijoc_ptr + 6 * O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_8 = tl.load(
        w_ijoc_ptr + 6 * O * C + O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    w_ijoc_9 = tl.load(
        w_ijoc_ptr + 6 * O * C + 2 * O * C + offs_o[:, None] * C + offs_c[None, :],
        mask=mask_o[:, None] & mask_c[None, :],
        other=0.0,
    )
    bias = tl.load(bias_ptr + offs_o, mask=mask_o, other=0.0)
    tile = tl.program_id(0)
    tiles_p = H
    b_at = tile // tiles_p
    p_at = tile % tiles_p
    x_bpqc_dim1 = p_at - 1
    x_bpqc_dim2 = offs_q[:, None] - 1
    x_bpqc = tl.load(
        x_bpqc_ptr + b_at * H * W * C + x_bpqc_dim1 * W * C + x_bpqc_dim2 * C + offs_c[None, :],
        mask=mask_q[:, None]
            & mask_c[None, :]
            & (x_bpqc_dim1 >= 0)
            & (x_bpqc_dim1 < H)
            & (x_bpqc_dim2 >= 0)
            & (x_bpqc_dim2 < W),
        other=0.0,
    )
    acc = tl.dot(w_ijoc, tl.trans(x_bpqc))
    x_bpqc_2 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + x_bpqc_dim1 * W * C + offs_q[:, None] * C + offs_c[None, :],
        mask=mask_q[:, None] & mask_c[None, :] & (x_bpqc_dim1 >= 0) & (x_bpqc_dim1 < H),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_2, tl.trans(x_bpqc_2), acc)
    x_bpqc_dim2_1 = offs_q[:, None] + 1
    x_bpqc_3 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + x_bpqc_dim1 * W * C + x_bpqc_dim2_1 * C + offs_c[None, :],
        mask=mask_q[:, None]
            & mask_c[None, :]
            & (x_bpqc_dim1 >= 0)
            & (x_bpqc_dim1 < H)
            & (x_bpqc_dim2_1 >= 0)
            & (x_bpqc_dim2_1 < W),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_3, tl.trans(x_bpqc_3), acc)
    x_bpqc_4 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + p_at * W * C + x_bpqc_dim2 * C + offs_c[None, :],
        mask=mask_q[:, None] & mask_c[None, :] & (x_bpqc_dim2 >= 0) & (x_bpqc_dim2 < W),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_4, tl.trans(x_bpqc_4), acc)
    x_bpqc_5 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + p_at * W * C + offs_q[:, None] * C + offs_c[None, :],
        mask=mask_q[:, None] & mask_c[None, :],
        other=0.0,
    )
    acc = tl.dot(w_ijoc_5, tl.trans(x_bpqc_5), acc)
    x_bpqc_6 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + p_at * W * C + x_bpqc_dim2_1 * C + offs_c[None, :],
        mask=mask_q[:, None] & mask_c[None, :] & (x_bpqc_dim2_1 >= 0) & (x_bpqc_dim2_1 < W),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_6, tl.trans(x_bpqc_6), acc)
    x_bpqc_dim1_2 = p_at + 1
    x_bpqc_7 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + x_bpqc_dim1_2 * W * C + x_bpqc_dim2 * C + offs_c[None, :],
        mask=mask_q[:, None]
            & mask_c[None, :]
            & (x_bpqc_dim1_2 >= 0)
            & (x_bpqc_dim1_2 < H)
            & (x_bpqc_dim2 >= 0)
            & (x_bpqc_dim2 < W),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_7, tl.trans(x_bpqc_7), acc)
    x_bpqc_8 = tl.load(
        x_bpqc_ptr
            + b_at * H * W * C
            + x_bpqc_dim1_2 * W * C
            + offs_q[:, None] * C
            + offs_c[None, :],
        mask=mask_q[:, None] & mask_c[None, :] & (x_bpqc_dim1_2 >= 0) & (x_bpqc_dim1_2 < H),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_8, tl.trans(x_bpqc_8), acc)
    x_bpqc_9 = tl.load(
        x_bpqc_ptr + b_at * H * W * C + x_bpqc_dim1_2 * W * C + x_bpqc_dim2_1 * C + offs_c[None, :],
        mask=mask_q[:, None]
            & mask_c[None, :]
            & (x_bpqc_dim1_2 >= 0)
            & (x_bpqc_dim1_2 < H)
            & (x_bpqc_dim2_1 >= 0)
            & (x_bpqc_dim2_1 < W),
        other=0.0,
    )
    acc = tl.dot(w_ijoc_9, tl.trans(x_bpqc_9), acc)
    y = (acc + bias[:, None].to(tl.float32)).to(tl.float16)
    tl.store(
        y_ptr + b_at * O * H * W + p_at * W + offs_o[:, None] * H * W + offs_q[None, :],
        y,
        mask=mask_o[:, None] & mask_q[None, :],
    )


def launch(x, w, bias, x_bpqc, w_ijoc, y):
    """Runs the kernel on contiguous tensors of one device; writes x_bpqc, w_ijoc, y."""
    for tensor in (x, w, bias, x_bpqc, w_ijoc, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = x.shape[0]
    C = x.shape[1]
    H = x.shape[2]
    W = x.shape[3]
    O = w.shape[0]
    conv2d_0[(B * triton.cdiv(H, 4),)](
        x, x_bpqc,
        C, H, W,
        EVEN_X_BPQC_P=H % 4 == 0,
        BLOCK_X_BPQC_Q=triton.next_power_of_2(W),
        EVEN_X_BPQC_Q=W == triton.next_power_of_2(W),
        BLOCK_X_BPQC_C=triton.next_power_of_2(C),
        EVEN_X_BPQC_C=C == triton.next_power_of_2(C),
        num_warps=4,
        num_stages=1,
    )
    conv2d_1[(3 * 3,)](
        w, w_ijoc,
        C, O,
        BLOCK_W_IJOC_O=triton.next_power_of_2(O),
        EVEN_W_IJOC_O=O == triton.next_power_of_2(O),
        BLOCK_W_IJOC_C=triton.next_power_of_2(C),
        EVEN_W_IJOC_C=C == triton.next_power_of_2(C),
        num_warps=4,
        num_stages=1,
    )
    conv2d_2[(B * H,)](
        bias, x_bpqc, w_ijoc, y,
        C, H, W, O,
        BLOCK_O=max(16, triton.next_power_of_2(O)),
        EVEN_O=O == max(16, triton.next_power_of_2(O)),
        BLOCK_Q=max(16, triton.next_power_of_2(W)),
        EVEN_Q=W == max(16, triton.next_power_of_2(W)),
        BLOCK_C=max(16, triton.next_power_of_2(C)),
        EVEN_C=C == max(16, triton.next_power_of_2(C)),
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
    x_bpqc = torch.empty((B, H, W, C), dtype=torch.float16, device=x.device)
    w_ijoc = torch.empty((3, 3, O, C), dtype=torch.float16, device=x.device)
    y = torch.empty((B, O, H, W), dtype=torch.float16, device=x.device)
    launch(x, w, bias, x_bpqc, w_ijoc, y)
    return y
