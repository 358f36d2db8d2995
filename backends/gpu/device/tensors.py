"""Tensors of a nest: on the device, without storage, and converted from and to the reference's arrays."""

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
# dtypes that numpy lacks
_WIDENED = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu)
PART = 1 << 25  # integers that are compared at a time: a comparison needs memory
_BAD_INTEGER = -1_234_567


def shape(parameter: Parameter, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor. sizes: all sizes of the spec, including derived ones."""
    return tuple(value(e, sizes) for e in parameter.shape)


def unplaced(parameter: Parameter, sizes: Mapping[str, int]) -> torch.Tensor:
    """A tensor with shape and dtype but without storage."""
    return torch.empty(shape(parameter, sizes), dtype=DTYPES[parameter.dtype], device="meta")


def viewed(array: np.ndarray, dtype: str) -> torch.Tensor:
    """A tensor that shares an array's memory where possible, and is read-only. Dtypes that numpy lacks are f32."""
    held: np.ndarray = np.ascontiguousarray(array, HELD_AS[dtype])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(held).reshape(array.shape)  # numpy makes scalars one-dimensional


def placed(array: np.ndarray, dtype: str, device: str = "cpu") -> torch.Tensor:
    """A copy of an array on a device. Dtypes that numpy lacks come as f32 values."""
    held: np.ndarray = np.array(array, HELD_AS[dtype], order="C", copy=True)
    return torch.from_numpy(held).to(device=device, dtype=DTYPES[dtype])


def poisoned(parameter: Parameter, sizes: Mapping[str, int], device: str = "cpu") -> torch.Tensor:
    """A tensor in which each kernel's writes show: NaN, or a number that no test expects; b8 is all true."""
    dims, dtype = shape(parameter, sizes), DTYPES[parameter.dtype]
    return poison(torch.empty(dims, dtype=dtype, device=device))


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """Fills a tensor with poison; integers wrap."""
    if tensor.dtype.is_floating_point or tensor.dtype == torch.bool:
        return tensor.fill_(float("nan") if tensor.dtype.is_floating_point else True)
    return tensor.fill_(int(torch.tensor(_BAD_INTEGER).to(tensor.dtype)))


def output(tensor: Tensor, memory: torch.Tensor) -> torch.Tensor:
    """An output in memory that was poisoned before a run; for a window of a larger tensor, the
    window. Raises BackendError("check") where the kernel wrote outside of the window."""
    if tensor.part is None:
        return memory
    beside = memory.clone()
    poison(beside[tensor.window])
    require_beside(tensor.name, same_bits(beside, poison(torch.empty_like(memory))))
    return memory[tensor.window].contiguous()


def array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as a numpy array; f32 where numpy lacks the dtype."""
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
