"""Arguments for operators under test: tensors of hypothesis's choice."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)
SEEDS = st.integers(0, 2**31)


def reals(
    shape: tuple[int, ...], seed: int, dtype: torch.dtype = torch.float64, special: bool = False
) -> torch.Tensor:
    """Normally distributed. special: some are zeros, infinities, NaN and whole numbers."""
    drawn = torch.Generator().manual_seed(seed)
    made = 2 * torch.randn(shape, dtype=torch.float64, generator=drawn)
    if special:
        odd = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 3.0, -3.0, 0.5, 1.5])
        which = torch.randint(2 * len(odd), shape, generator=drawn)
        made = torch.where(which < len(odd), odd[which % len(odd)].double(), made)
    return made.to(dtype)


def integers(
    shape: tuple[int, ...],
    seed: int,
    dtype: torch.dtype = torch.int64,
    low: int = -9,
    high: int = 9,
) -> torch.Tensor:
    """From low to high, both included; of unsigned ones their sizes."""
    drawn = torch.Generator().manual_seed(seed)
    made = torch.randint(low, high + 1, shape, generator=drawn)
    return (made.abs() if dtype == torch.uint8 else made).to(dtype)


def truths(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Of bool."""
    return integers(shape, seed, torch.bool, 0, 1)


def numbered(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """1, 2, 3, ... in order, so that each element is told from all others."""
    return torch.arange(1, math.prod(shape) + 1).reshape(shape).to(dtype)
