"""Inputs that formulas define, generated on the device; and outputs that stay on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from backends.backend import MachineFault
from backends.gpu.device.nodes import device_turns
from backends.gpu.device.tensors import DTYPES, array, same_bits
from ir.reference.formulas import PART, Arithmetic, Formula, quantiles
from ir.reference.rounding import HELD_AS

_SAMPLE = 1 << 12  # numbers
_SAMPLES = (
    Formula("f32", (_SAMPLE,), (0x2B992DDF, -0x5EED)),
    Formula("f32", (_SAMPLE,), (-0x1CA6, 0x5BD1E995), limits=(1.5, 3.7)),
    Formula("f32", (_SAMPLE,), (0x165667B1, 7), draw="tiny", positive=True, shift=1000.0),
)
_WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes


def fill(tensor: torch.Tensor, formula: Formula) -> None:
    """Enqueues writing the numbers of a contiguous tensor."""
    for part, made in _parts(tensor, formula):
        part.copy_(made)


def differs(tensor: torch.Tensor, formula: Formula) -> torch.Tensor:
    """Enqueues a comparison of a contiguous tensor with a formula; returns a boolean on the device,
    true where bits differ."""
    found = torch.zeros((), dtype=torch.bool, device=tensor.device)
    kind = _WHOLE[tensor.element_size()]
    for part, made in _parts(tensor, formula):
        found |= (part.view(kind) != made.view(kind)).any()
    return found


def _parts(tensor: torch.Tensor, formula: Formula) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each part of a tensor, with a formula's values there in the tensor's dtype."""
    flat, by = tensor.view(-1), _arithmetic(str(tensor.device))
    for start in range(0, flat.numel(), PART):
        part = flat[start : start + PART]
        places = torch.arange(start, start + part.numel(), dtype=torch.int32, device=tensor.device)
        yield part, _held(formula.at(places, by), formula.dtype)


def _held(made: torch.Tensor, dtype: str) -> torch.Tensor:
    """Numbers in a dtype. Values beyond the largest f8e4m3 saturate; torch may return NaN."""
    if dtype == "f8e4m3":
        end = torch.finfo(DTYPES[dtype]).max
        made = made.clip(-end, end)
    return made.to(DTYPES[dtype])


@cache
def _arithmetic(device: str) -> Arithmetic:
    table = torch.from_numpy(quantiles()).to(device, copy=True)
    made = Arithmetic(
        table=lambda at: table.index_select(0, at),
        floats=lambda x: x.to(torch.float32),
        long=lambda x: x.to(torch.int64),
    )
    _require_alike(made, device)
    return made


def _require_alike(by: Arithmetic, device: str) -> None:
    """Raises MachineFault where a device and numpy compute different bits: every kernel would fail."""
    places = torch.arange(_SAMPLE, dtype=torch.int32, device=device)
    for one in _SAMPLES:
        if array(one.at(places, by)).tobytes() != one.filled().tobytes():
            raise MachineFault("check", f"on {device} inputs are not those that references have")


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """A `Held` output. Every access to it uses the device exclusively."""

    tensor: torch.Tensor
    declared: str  # its dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(HELD_AS[self.declared])

    def take(self, at: np.ndarray, axis: int) -> HeldTensor:
        """The elements at positions of an axis."""
        with device_turns().together():
            places = torch.from_numpy(at).to(self.tensor.device)
            return HeldTensor(_taken(self.tensor, axis, places), self.declared)

    def same_bits(self, other: HeldTensor) -> bool:
        """Whether another one of this shape and dtype holds the same bits."""
        with device_turns().together():
            return same_bits(self.tensor, other.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        with device_turns().together():
            return np.asarray(array(self.tensor), dtype)


def _taken(tensor: torch.Tensor, axis: int, places: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point() or tensor.element_size() > 1:
        return tensor.index_select(axis, places)
    # torch has no operation but copies for 8-bit floats
    return tensor.view(torch.uint8).index_select(axis, places).view(tensor.dtype)
