"""Tensors of programs: the language's dtypes in torch, and checks of a caller's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

import torch

from ir.dtypes import TORCH_NAMES
from ir.errors import KernelError
from ir.spec import DTYPES

TORCH = {name: getattr(torch, said) for name, said in TORCH_NAMES.items()}
Shape = tuple[int, ...]


def byte_count(dtype: str, shape: Shape) -> int:
    """The size of a tensor in bytes."""
    return DTYPES[dtype] * prod(shape)


def require(tensor: torch.Tensor, name: str, dtype: str, shape: Shape, place: str) -> None:
    """Raises KernelError if a tensor is not what a program was compiled for.

    place: torch's name of the device. Tensors must be contiguous in row-major order.
    """
    if not isinstance(tensor, torch.Tensor):
        raise KernelError(f"`{name}` is {type(tensor).__name__}", allowed="a tensor")
    if tensor.dtype != TORCH[dtype] or tuple(tensor.shape) != shape:
        raise KernelError(
            f"`{name}` is {tensor.dtype}{list(tensor.shape)}",
            allowed=f"{TORCH[dtype]}{list(shape)}, as it was compiled for",
        )
    if not tensor.is_contiguous():
        raise KernelError(
            f"`{name}` has strides {tuple(tensor.stride())}",
            allowed="rows one after the other, as it was compiled for",
            hint=f"{name}.contiguous()",
        )
    if tensor.device.type != place:
        raise KernelError(
            f"`{name}` is on {tensor.device}", allowed=place, hint=f'{name}.to("{place}")'
        )


def require_no_gradients(
    tensors: Mapping[str, torch.Tensor], known_as: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raises KernelError if autograd records a tensor (by name) that requires a gradient: kernels
    compute no gradients, so the gradient would silently be missing.

    known_as: other names for the tensors, for messages.
    """
    if not torch.is_grad_enabled():
        return
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            raise KernelError(
                f"`{known_as.get(name, name)}` requires gradients, and kernels compute none",
                allowed="what requires none; anything under torch.no_grad()",
                hint="call it under torch.no_grad(), or give it tensors that are detached",
            )


def part(memory: torch.Tensor, at: int, dtype: str, shape: Shape) -> torch.Tensor:
    """A view of part of a byte buffer as a tensor. at: its first byte."""
    return memory[at : at + byte_count(dtype, shape)].view(TORCH[dtype]).view(shape)
