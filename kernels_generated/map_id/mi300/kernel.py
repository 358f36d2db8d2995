"""map_id: Find each id among the sorted keys: its place counted from 1, or 0 where it is missing.

Generated from spec 2a0b685e5976ff86 and schedule 62cc0b8dcaf98ba7.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rank(keys, borders_ptr, count, STEPS: tl.constexpr):
    """How many of the sorted borders are less than each key, found by halving."""
    low = tl.zeros_like(keys).to(tl.int32)
    high = low + count
    for _ in range(STEPS):
        middle = (low + high) // 2
        open_ = low < high
        border = tl.load(borders_ptr + middle, mask=open_, other=0)
        less = open_ & (border < keys)
        low = tl.where(less, middle + 1, low)
        high = tl.where(less, high, middle)
    return low


@triton.jit
def map_id_0(
    keys_ptr, ids_ptr, y_ptr,
    B, U,
    EVEN_B: tl.constexpr,
    STEPS_KEYS: tl.constexpr,
):
    # y[b] = where(hit[b] == ids[b], pos[b] + 1, 0)
    tile = tl.program_id(0)
    b_at = tile * 128
    offs_b = b_at + tl.arange(0, 128)
    mask_b = (offs_b < B) | EVEN_B
    ids = tl.load(ids_ptr + offs_b, mask=mask_b, other=0)
    keys_rank = rank(ids, keys_ptr, U, STEPS_KEYS)
    keys_rows = tl.minimum(keys_rank, U - 1)
    keys_at_ = tl.load(keys_ptr + keys_rows, mask=mask_b, other=0)
    y = tl.where(keys_at_ == ids, keys_rank + 1, 0)
    tl.store(y_ptr + offs_b, y, mask=mask_b)


def launch(ids, keys, y):
    """Runs the kernel on contiguous tensors of one device; writes y."""
    for tensor in (ids, keys, y):
        if not tensor.is_contiguous() or tensor.numel() >= 2**31:
            raise ValueError("tensors must be contiguous, with less than 2**31 elements")
    B = ids.shape[0]
    U = keys.shape[0]
    map_id_0[(triton.cdiv(B, 128),)](
        keys, ids, y,
        B, U,
        EVEN_B=B % 128 == 0,
        STEPS_KEYS=U.bit_length(),
        num_warps=2,
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


def map_id(ids, keys):
    """Find each id among the sorted keys: its place counted from 1, or 0 where it is missing."""
    _require("ids", ids, torch.int32, ("B",), ids)
    B = ids.shape[0]
    _require("keys", keys, torch.int32, ("U",), ids)
    y = torch.empty((B,), dtype=torch.int32, device=ids.device)
    launch(ids, keys, y)
    return y
