"""embedding_bag: Add up the rows of table that each bag names; bag b holds idx[offsets[b]:offsets[b + 1]].

Generated from spec a43c77321c1f0d91 and schedule 8d93f5749f9e242e.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_bag_0(
    idx_ptr, table_ptr, offsets_ptr, y_ptr,
    D,
    BLOCK_D: tl.constexpr,
    EVEN_D: tl.constexpr,
):
    # y[b, d] = sum(table[idx[l], d], l=range(offsets[b], offsets[b + 1]))
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = (offs_d < D) | EVEN_D
    tile = tl.program_id(0)
    b_at = tile
    y = tl.full([BLOCK_D], 0.0, tl.float32)
    l_low = tl.load(offsets_ptr + b_at)
    l_high = tl.load(offsets_ptr + b_at + 1)
    for l_at in tl.range(l_low, l_high, 16, num_stages=1):
        offs_l = l_at + tl.arange(0, 16)
        mask_l = offs_l < l_high
        idx = tl.load(idx_ptr + offs_l, mask=mask_l, other=0)
        table = tl.load(
            table_ptr + idx[:, None] * D + offs_d[None, :],
            mask=mask_l[:, None] & mask_d[None, :],
            other=0.0,
        )
        y += tl.sum(table, 0)
    tl.store(y_ptr + b_at * D + offs_d, y, mask=mask_d)


def launch(table, idx, offsets, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (table, idx, offsets, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    D = table.shape[1]
    B = offsets.shape[0] - 1
    embedding_bag_0[(B,)](
        idx, table, offsets, y,
        D,
        BLOCK_D=triton.next_power_of_2(D),
        EVEN_D=D == triton.next_power_of_2(D),
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


def embedding_bag(table, idx, offsets):
    """Add up the rows of table that each bag names; bag b holds idx[offsets[b]:offsets[b + 1]]."""
    _require("table", table, torch.float32, ("V", "D"), table)
    D = table.shape[1]
    _require("idx", idx, torch.int32, ("L",), table)
    _require("offsets", offsets, torch.int32, ("B + 1",), table)
    B = offsets.shape[0] - 1
    if B < 0:
        raise ValueError(f"`offsets` is too short: it tells B = {B}")
    y = torch.empty((B, D), dtype=torch.float32, device=table.device)
    launch(table, idx, offsets, y)
    return y
