"""An entry of the benchmark: how to make a module and the arguments of a call."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

TORCH = "torch"
FLOATS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
Arguments = tuple[Tensor, ...]
# Returns a module and a function that draws the arguments of a call, both on torch's default device
# in f32.
Maker = Callable[..., tuple[nn.Module, Callable[[], Arguments]]]
SCALES = (1.0, 1 / 32, 4.0)  # Scales of the floats in the draws that a result is checked on.


@dataclass(frozen=True, slots=True)
class Entry:
    """One module at the sizes of a published model."""

    name: str
    package: str  # Its package, besides torch.
    dtype: str  # Dtype of its parameters and floating-point arguments.
    maker: Maker
    sizes: Mapping[str, int]
    tiny: Mapping[str, int]  # Sizes at which it runs on any machine.
    scales: tuple[float, ...] = SCALES

    @property
    def missing(self) -> str:
        """The package that is not installed here. Empty if none is missing."""
        return "" if find_spec(self.package) else self.package

    def made(self, seed: int, place: str, small: bool = False) -> MadeModule:
        """Makes the module and its draws on a device. place: torch's name of it. small: uses tiny
        sizes.

        Raises whatever the package raises.
        """
        with torch.device(place):
            torch.manual_seed(seed)
            module, draw = self.maker(**(self.tiny if small else self.sizes))
            _expressive(module.eval().requires_grad_(False))
        return MadeModule(module.to(FLOATS[self.dtype]), draw, place, FLOATS[self.dtype])


@dataclass(frozen=True, slots=True)
class MadeModule:
    """A module, on a device and in evaluation mode, and its arguments."""

    module: nn.Module
    draw: Callable[[], Arguments]
    place: str
    dtype: torch.dtype

    def arguments(self, seed: int, scale: float = 1.0) -> Arguments:
        """Draws arguments of a call with a seed. scale: of floats."""
        with torch.device(self.place):
            torch.manual_seed(seed)
            drawn = self.draw()
        return tuple(
            (t * scale).to(self.dtype) if t.is_floating_point() else t.contiguous() for t in drawn
        )


class Called(nn.Module):
    """A layer with the values that its model computes once for all layers.

    The result is the first tensor that it returns.
    """

    def __init__(self, layer: nn.Module, **given: Any):
        super().__init__()
        self.layer = layer
        self.tables = [name for name, value in given.items() if isinstance(value, tuple)]
        self.plain = {n: v for n, v in given.items() if n not in self.tables}
        for name in self.tables:
            for n, table in enumerate(given[name]):
                self.register_buffer(f"{name}_{n}", table)
        self.counts = {name: len(given[name]) for name in self.tables}

    def forward(self, x: Tensor) -> Tensor:
        tables = {
            name: tuple(getattr(self, f"{name}_{n}") for n in range(count))
            for name, count in self.counts.items()
        }
        found = self.layer(x, **tables, **self.plain)
        return found[0] if isinstance(found, tuple) else found


def part(module: str, name: str) -> Any:
    """Imports a module of a package and returns one of its names."""
    return getattr(importlib.import_module(module), name)


def _expressive(module: nn.Module) -> None:
    """Gives initial parameters the spread of trained ones, so that a wrong part of a module affects
    its result.

    An initial layer scale of 1e-6, zero biases and near-zero logits would hide it.
    """
    for path, each in module.named_modules():
        if isinstance(each, nn.Linear) or type(each).__name__ == "Conv1D":
            weight = each.weight
            assert isinstance(weight, Tensor), "a layer has a tensor of weights"
            inputs = weight.shape[1] if isinstance(each, nn.Linear) else weight.shape[0]
            gain = 2.0 if path.split(".")[-1] in _LOGITS else 1.0
            weight.mul_(gain * inputs**-0.5 / weight.std())
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if name.endswith("running_var"):
            value.mul_(torch.empty_like(value).uniform_(0.5, 1.5))
        elif name.endswith("running_mean") or (
            isinstance(value, nn.Parameter) and (value.dim() == 1 or "bias_table" in name)
        ):
            value.add_(torch.empty_like(value).normal_(std=0.1))


# Layers of queries and keys.
_LOGITS = (
    "query",
    "key",
    "q_proj",
    "k_proj",
    "q",
    "k",
    "qkv",
    "c_attn",
)
