"""ssm: The scan of a selective state space model.

Generated from spec 413d6e3ec78773f4 and schedule f9e22a6f1080b0c9.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def ssm_0(
    dt_ptr, a_ptr, wb_ptr, x_ptr, wc_ptr, y_ptr,
    T, B, D, N,
    EVEN_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EVEN_N: tl.constexpr,
):
    # decay[t, b, d, n] = exp(-dt[t, b, d] ** 2 * a[d, n] ** 2)
    # put[t, b, d, n] = dt[t, b, d] * wb[t, b, n] * x[t, b, d]
    # h[t, b, d, n] = decay[t, b, d, n] * pad(h[t - 1, b, d, n], 0.0) + put[t, b, d, n]
    # y[t, b, d] = sum(h[t, b, d, n] * wc[t, b, n], n)
    offs_n = tl.arange(0, BLOCK_N)
    mask_n = (offs_n < N) | EVEN_N
    tile = tl.program_id(0)
    tiles_d = tl.cdiv(D, 64)
    b_at = tile // tiles_d
    d_at = tile % tiles_d * 64
    offs_d = d_at + tl.arange(0, 64)
    mask_d = (offs_d < D) | EVEN_D
    a = tl.load(
        a_ptr + offs_d[:, None] * N + offs_n[None, :],
        mask=mask_d[:, None] & mask_n[None, :],
        other=0.0,
    )
    h_before = tl.full([64, BLOCK_N], 0.0, tl.float32)
    for t_at in tl.range(0, T, num_stages=3):
        dt = tl.load(dt_ptr + t_at * B * D + b_at * D + offs_d, mask=mask_d, other=0.0)
        part_1 = dt[:, None]
        decay = tl.exp((-(part_1 * part_1)) * (a * a))
        wb = tl.load(wb_ptr + t_at * B * N + b_at * N + offs_n, mask=mask_n, other=0.0)
        x = tl.load(x_ptr + t_at * B * D + b_at * D + offs_d, mask=mask_d, other=0.0)
        put = (dt[:, None] * wb[None, :]) * x[:, None]
        h = (decay * h_before) + put
        wc = tl.load(wc_ptr + t_at * B * N + b_at * N + offs_n, mask=mask_n, other=0.0)
        y_term = h * wc[None, :]
        y = tl.sum(tl.where(mask_n[None, :], y_term, 0.0), 1)
        tl.store(y_ptr + t_at * B * D + b_at * D + offs_d, y, mask=mask_d)
        h_before = h


def launch(x, dt, a, wb, wc, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (x, dt, a, wb, wc, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    T = x.shape[0]
    B = x.shape[1]
    D = x.shape[2]
    N = a.shape[1]
    ssm_0[(B * triton.cdiv(D, 64),)](
        dt, a, wb, x, wc, y,
        T, B, D, N,
        EVEN_D=D % 64 == 0,
        BLOCK_N=triton.next_power_of_2(N),
        EVEN_N=N == triton.next_power_of_2(N),
        num_warps=4,
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


def ssm(x, dt, a, wb, wc):
    """The scan of a selective state space model."""
    _require("x", x, torch.float32, ("T", "B", "D"), x)
    T = x.shape[0]
    B = x.shape[1]
    D = x.shape[2]
    _require("dt", dt, torch.float32, (T, B, D), x)
    _require("a", a, torch.float32, (D, "N"), x)
    N = a.shape[1]
    _require("wb", wb, torch.float32, (T, B, N), x)
    _require("wc", wc, torch.float32, (T, B, N), x)
    y = torch.empty((T, B, D), dtype=torch.float32, device=x.device)
    launch(x, dt, a, wb, wc, y)
    return y
