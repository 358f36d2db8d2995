"""Dtypes: PyTorch's and the language's."""

from __future__ import annotations

import torch

from ir.dtypes import TORCH_NAMES
from ir.errors import KernelError

TORCH = {name: getattr(torch, said) for name, said in TORCH_NAMES.items()}
# What a module gives and gets is never tf32, which lies in memory as f32.
NAMES = {dtype: name for name, dtype in TORCH.items() if name != "tf32"}


def name_of(dtype: torch.dtype) -> str:
    """A dtype of PyTorch in the language; KernelError where it has none."""
    if dtype not in NAMES:
        raise KernelError(f"{dtype} is no dtype of the language", allowed=", ".join(NAMES.values()))
    return NAMES[dtype]
