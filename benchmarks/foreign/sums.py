"""Sums over all of a result with seeded weights. Only a process that has computed all of it knows
them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from benchmarks.foreign.frames import is_sent

MOST = 1 << 27  # Weights of a tensor. Longer tensors repeat them.
SHIFTS = 1 << 16  # Limit of the shift between the weights of two calls.


@dataclass(slots=True)
class Sums:
    """The sums of results. Weights are made once for each tensor, so a sum is one pass over it."""

    seed: int
    _weights: dict[tuple[Any, ...], torch.Tensor] = field(default_factory=dict)

    def of(self, result: Any, shift: int = 0) -> list[torch.Tensor]:
        """Returns the weighted sum of the elements, one number for each tensor of a result. Nothing
        waits for the device.

        shift: where the weights of this call begin. If all calls had the same weights, a linear
        function's sums would be products of its inputs and of precomputed weights.
        """
        return [self._sum(n, t, shift % SHIFTS) for n, t in enumerate(_tensors(result))]

    def norms(self, result: Any) -> list[float]:
        """Returns the norm of the weighted elements for each tensor, as the weights are
        distributed."""
        return [float(t.detach().double().norm()) / math.sqrt(12.0) for t in _tensors(result)]

    def _sum(self, place: int, tensor: torch.Tensor, shift: int) -> torch.Tensor:
        flat = tensor.detach().reshape(-1)
        if flat.dtype not in (torch.float32, torch.float64):
            flat = flat.float() if flat.is_floating_point() else flat.double()
        parts = flat.split(MOST)
        if not flat.numel():
            return torch.zeros((), device=flat.device)
        weights = self._of(place, parts[0])[shift:]
        found = torch.dot(parts[0], weights[: parts[0].numel()])
        for part in parts[1:]:
            found = found + torch.dot(part, weights[: part.numel()])
        return found

    def _of(self, place: int, part: torch.Tensor) -> torch.Tensor:
        key = (place, part.numel(), part.dtype, part.device)
        if key not in self._weights:
            rng = torch.Generator(part.device).manual_seed(self.seed + place)
            # Independent of a solution's default.
            form = dict(dtype=torch.float32, device=part.device)
            drawn = torch.rand(part.numel() + SHIFTS, generator=rng, **form)
            self._weights[key] = drawn.sub_(0.5).to(part.dtype)
        return self._weights[key]


def _tensors(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(result)[0] if is_sent(leaf)]
