"""Memory that tensors share: a call that changes a tensor must not read it under another name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ir.errors import KernelError

_EFFORT = 10_000  # steps in which numpy must tell whether two tensors overlap
Named = tuple[str, torch.Tensor]


def storages(tensors: Iterable[Named]) -> dict[int, list[Named]]:
    """Tensors by the address of the memory that they are views of. Those without elements or
    values lie nowhere."""
    found: dict[int, list[Named]] = {}
    for name, tensor in tensors:
        if tensor.layout is torch.strided and not tensor.is_meta and tensor.numel():
            found.setdefault(tensor.untyped_storage().data_ptr(), []).append((name, tensor))
    return found


def require_apart(tensors: Iterable[Named], changed: Collection[str]) -> None:
    """KernelError where a tensor that a call changes overlaps another one of the call, or where
    several of its own elements lie at one place. changed: names of such tensors."""
    for group in storages(tensors).values():
        for name, tensor in group:
            if name in changed:
                _require_own_places(name, tensor)
                _require_alone(name, tensor, group)


def _require_own_places(name: str, tensor: torch.Tensor) -> None:
    strides = tuple(tensor.stride())
    if any(step == 0 and size > 1 for size, step in zip(tensor.shape, strides, strict=True)):
        raise KernelError(
            f"the call changes {name}, whose elements share memory: its strides are {strides}",
            hint="give a copy: `.clone(memory_format=torch.contiguous_format)`",
        )


def _require_alone(name: str, tensor: torch.Tensor, group: Iterable[Named]) -> None:
    for other, theirs in group:
        if other != name and overlap(tensor, theirs):
            raise KernelError(
                f"the call changes {name}, which shares memory with {other}",
                allowed="memory of its own for a tensor that a call changes",
                hint="give a copy of one of them: `.clone()`",
            )


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have an element in common."""
    try:
        return np.shares_memory(_Bytes(a), _Bytes(b), max_work=_EFFORT)
    except np.exceptions.TooHardError:
        return True


def apart(arguments: Any) -> Any:
    """Arguments for a trace: the same, or copies of those that are views of one memory, which
    torch.export does not take where a call changes one."""
    leaves, structure = tree_flatten(arguments)
    seen: set[int] = set()
    made = [_copied(leaf, seen) for leaf in leaves]
    same = all(a is b for a, b in zip(leaves, made, strict=True))
    return arguments if same else tree_unflatten(made, structure)


def _copied(leaf: Any, seen: set[int]) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return leaf
    at = leaf.untyped_storage()._cdata
    if at in seen:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    seen.add(at)
    return leaf


class _Bytes:
    """Where a tensor's elements lie, for numpy, which looks at none of them."""

    def __init__(self, tensor: torch.Tensor):
        size = tensor.element_size()
        self.__array_interface__: Mapping[str, Any] = {
            "version": 3,
            "data": (tensor.data_ptr(), True),
            "shape": tuple(tensor.shape),
            "strides": tuple(step * size for step in tensor.stride()),
            "typestr": f"|V{size}",
        }
