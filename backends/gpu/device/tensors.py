"""Tensors of a nest: on the device, on none, and from and to the arrays of the reference."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import torch

from backends.fences import require_beside
from ir.dtypes import TORCH_NAMES
from ir.nest.nest import Parameter
from ir.reference.rounding import HELD_AS
from ir.sizes import value
from ir.spec import Tensor

DTYPES = {name: getattr(torch, said) for name, said in TORCH_NAMES.items()}
# numpy lacks them
_WIDENED = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu)
PART = 1 << 25  # integers that are compared at a time: a comparison takes memory
_BAD_INTEGER = -1_234_567


def shape(parameter: Parameter, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor. sizes: all of the spec, derived ones included."""
    return tuple(value(e, sizes) for e in parameter.shape)


def unplaced(parameter: Parameter, sizes: Mapping[str, int]) -> torch.Tensor:
    """A tensor with shape and dtype and nothing in it."""
    return torch.empty(shape(parameter, sizes), dtype=DTYPES[parameter.dtype], device="meta")


def viewed(array: np.ndarray, dtype: str) -> torch.Tensor:
    """An array as a tensor of its values, which are not to be changed; a copy only where it has to be one.
    What numpy lacks comes as f32."""
    held: np.ndarray = np.ascontiguousarray(array, HELD_AS[dtype])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(held).reshape(array.shape)  # of a scalar numpy makes a vector


def placed(array: np.ndarray, dtype: str, device: str = "cpu") -> torch.Tensor:
    """A copy of an array on a device; what numpy lacks comes as f32 of its values, any shape."""
    held: np.ndarray = np.array(array, HELD_AS[dtype], order="C", copy=True)
    return torch.from_numpy(held).to(device=device, dtype=DTYPES[dtype])


def poisoned(parameter: Parameter, sizes: Mapping[str, int], device: str = "cpu") -> torch.Tensor:
    """A tensor that no kernel has written: NaN, or what no test gives; b8 is all true."""
    dims, dtype = shape(parameter, sizes), DTYPES[parameter.dtype]
    return poison(torch.empty(dims, dtype=dtype, device=device))


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, filled so; integers wrap."""
    if tensor.dtype.is_floating_point or tensor.dtype == torch.bool:
        return tensor.fill_(float("nan") if tensor.dtype.is_floating_point else True)
    return tensor.fill_(int(torch.tensor(_BAD_INTEGER).to(tensor.dtype)))


def output(tensor: Tensor, memory: torch.Tensor) -> torch.Tensor:
    """An output in memory that was poisoned before a run. Of one that is a part of a larger tensor, the part;
    BackendError("check") where the kernel wrote beside it."""
    if tensor.part is None:
        return memory
    beside = memory.clone()
    poison(beside[tensor.window])
    require_beside(tensor.name, same_bits(beside, poison(torch.empty_like(memory))))
    return memory[tensor.window].contiguous()


def array(tensor: torch.Tensor) -> np.ndarray:
    """The tensor as numpy has it; what numpy lacks as f32."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in _WIDENED else tensor).numpy()


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape hold the same bits, NaNs included."""
    raw = [t.contiguous().view(-1).view(torch.uint8) for t in (a, b)]
    if all(t.numel() % 8 == 0 and t.storage_offset() % 8 == 0 for t in raw):
        raw = [t.view(torch.int64) for t in raw]
    one, other = raw
    if one.shape != other.shape:
        return False
    starts = range(0, len(one), PART)
    return all(torch.equal(one[at : at + PART], other[at : at + PART]) for at in starts)
