"""Draws inputs on a device. The values that an input may hold follow from its use, as in
`ir.reference.inputs`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor

from backends.program.tensors import TORCH
from ir.reference.inputs import Use, uses
from ir.sizes import bind, shape
from ir.spec import DTYPES, FLOATS, Spec
from ir.spec import Tensor as Declared

# Mean and standard deviation of an input, if a publication gives them (KernelEvolve's, for the
# convolution of its table). Every other float has mean 0 and deviation 1.
DRAWN = {
    "conv1d": {"x": (0.006413, 0.041105), "w": (-0.000024, 0.047870)},
}
_LEAST = 0.1  # Keeps quotients and logarithms moderate.


def input_bytes(spec: Spec, sizes: Mapping[str, int]) -> int:
    """Returns the bytes of one set of inputs."""
    bound = bind(spec, sizes)
    return sum(DTYPES[t.dtype] * prod(shape(t, bound)) for t in spec.inputs)


def draw(spec: Spec, sizes: Mapping[str, int], device: str, seed: int) -> list[Tensor]:
    """Returns the inputs in the spec's order: contiguous tensors on a device. The same seed gives
    the same values."""
    rng = torch.Generator(device).manual_seed(seed)
    bound = bind(spec, sizes)
    use = uses(spec, bound)
    made = {t.name: _plain(spec, t, shape(t, bound), use, rng) for t in spec.inputs}
    for low, last in use.bounds.items():
        _offsets(made, low, use.ends.get(low), last, rng)
    for borders, searched in use.borders.items():
        _borders(made, borders, [s for s in searched if s not in use.within], rng)
    return [made[t.name].to(TORCH[t.dtype]).contiguous() for t in spec.inputs]


def outputs(spec: Spec, sizes: Mapping[str, int], device: str) -> list[Tensor]:
    """Returns poisoned tensors for the outputs: NaN, or a number that no kernel is likely to
    produce."""
    bound = bind(spec, sizes)
    return [poisoned(t.dtype, shape(t, bound), device) for t in spec.outputs]


def poisoned(dtype: str, dims: tuple[int, ...], device: str) -> Tensor:
    """Returns a tensor of NaN; of the smallest integer plus seven; or of True."""
    if TORCH[dtype].is_floating_point:
        return torch.full(dims, float("nan"), dtype=TORCH[dtype], device=device)
    poison = True if dtype == "b8" else torch.iinfo(TORCH[dtype]).min + 7
    return torch.full(dims, poison, dtype=TORCH[dtype], device=device)


def _plain(
    spec: Spec, tensor: Declared, dims: tuple[int, ...], use: Use, rng: torch.Generator
) -> Tensor:
    where: dict[str, Any] = {"generator": rng, "device": rng.device}
    if tensor.name in use.within:
        return torch.randint(*use.within[tensor.name], dims, **where)
    if tensor.dtype == "b8":
        return torch.rand(dims, **where) < 0.5
    if tensor.dtype not in FLOATS:
        return torch.randint(-8, 9, dims, **where)
    drawn = torch.randn(dims, dtype=torch.float32, **where)
    if tensor.name in use.positive:
        return drawn.abs_().add_(_LEAST)
    mean, deviation = DRAWN.get(spec.name, {}).get(tensor.name, (0.0, 1.0))
    return drawn if (mean, deviation) == (0.0, 1.0) else drawn.mul_(deviation).add_(mean)


def _offsets(
    made: dict[str, Tensor], low: str, high: str | None, last: int, rng: torch.Generator
) -> None:
    """Draws sorted offsets from 0 to `last`. A single offset stays 0."""
    count = made[low].numel() + (high is not None)
    drawn = torch.randint(0, last + 1, (count,), generator=rng, device=rng.device)
    offsets = drawn.sort().values
    offsets[0] = 0
    if count > 1:
        offsets[-1] = last
    if high is None:
        made[low] = offsets
    else:
        made[low], made[high] = offsets[:-1], offsets[1:]


def _borders(
    made: dict[str, Tensor], borders: str, searched: list[str], rng: torch.Generator
) -> None:
    """Sorts the borders. Integer borders are distinct, and half of the searched values are among
    them."""
    if made[borders].is_floating_point():
        made[borders] = made[borders].sort().values
        return
    count = made[borders].numel()
    span = max(4 * count, 2)
    kept = torch.randperm(span, generator=rng, device=rng.device)[:count].sort().values
    made[borders] = kept
    for name in searched:
        dims = made[name].shape
        where: dict[str, Any] = {"generator": rng, "device": rng.device}
        hits = kept[torch.randint(0, count, dims, **where)]
        misses = torch.randint(0, span, dims, **where)
        made[name] = torch.where(torch.rand(dims, **where) < 0.5, hits, misses)
