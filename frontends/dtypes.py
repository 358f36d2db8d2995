"""Dtypes: PyTorch's and the language's."""

from __future__ import annotations

import torch

from ir.errors import KernelError

NAMES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
}
TORCH = {name: dtype for dtype, name in NAMES.items()}


def name_of(dtype: torch.dtype) -> str:
    """A dtype of PyTorch in the language; KernelError where it has none."""
    if dtype not in NAMES:
        raise KernelError(f"{dtype} is no dtype of the language", allowed=", ".join(TORCH))
    return NAMES[dtype]
