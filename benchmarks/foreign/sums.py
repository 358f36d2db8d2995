"""Sums over all of a result, by weights of a seed: numbers that nobody has who has not computed it all."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from benchmarks.foreign.frames import is_sent

PART = 1 << 22  # elements that are weighed at a time: weights take memory


def sums(result: Any, seed: int) -> list[torch.Tensor]:
    """Of each tensor of a result the sum of its elements by weights, f64 without a shape. What is no number
    counts as 0. Nothing waits for the device."""
    return [_sum(t, seed + n, 1) for n, t in enumerate(_tensors(result))]


def norms(result: Any, seed: int) -> list[float]:
    """Of each tensor the norm of what `sums` adds."""
    return [float(_sum(t, seed + n, 2)) ** 0.5 for n, t in enumerate(_tensors(result))]


def _tensors(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(result)[0] if is_sent(leaf)]


def _sum(tensor: torch.Tensor, seed: int, power: int) -> torch.Tensor:
    rng = torch.Generator(tensor.device).manual_seed(seed)
    total = torch.zeros((), dtype=torch.float64, device=tensor.device)
    for part in tensor.detach().reshape(-1).split(PART):
        weights = torch.rand(part.shape, generator=rng, device=tensor.device).sub_(0.5)
        numbers = torch.nan_to_num(part.double(), 0.0, 0.0, 0.0)
        total += numbers.mul_(weights).pow_(power).sum()
    return total
