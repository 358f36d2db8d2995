"""Dtypes: PyTorch's and the language's."""

from __future__ import annotations

import torch

from ir.dtypes import TORCH_NAMES
from ir.errors import KernelError

# Tensors of a spec are never tf32, so each dtype of PyTorch has one name.
TORCH = {name: getattr(torch, said) for name, said in TORCH_NAMES.items() if name != "tf32"}
NAMES = {dtype: name for name, dtype in TORCH.items()}


def name_of(dtype: torch.dtype) -> str:
    """A dtype of PyTorch in the language; KernelError where it has none."""
    if dtype not in NAMES:
        raise KernelError(f"{dtype} is no dtype of the language", allowed=", ".join(TORCH))
    return NAMES[dtype]
