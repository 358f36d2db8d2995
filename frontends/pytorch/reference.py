"""A call of an imported module by the reference: equations evaluated with numpy in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frontends.dtypes import TORCH
from frontends.pytorch.call import given, leaves_of, left_behind, returned, state_of
from frontends.pytorch.imported import Imported
from ir.errors import KernelError
from ir.reference.reference import evaluate
from ir.sizes import free_sizes
from ir.spec import FLOATS, Size


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call returns, and what it leaves in buffers (by path) and arguments (by place)."""

    result: Any
    left: Mapping[str | int, Any]


def answer(
    made: Imported,
    module: torch.nn.Module | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> CallResult:
    """A call's results, floats in float64. External calls cannot be evaluated: KernelError."""
    if made.external:
        raise KernelError(f"`{made.external[0].operator}` is left to PyTorch and has no equations")
    state = state_of(made, module)
    leaves = leaves_of(made, args, kwargs)
    tensors = given(made, state, leaves, seed)
    arrays = {name: _array(t) for name, t in tensors.items()}
    found = evaluate(made.spec, arrays, sizes_of(made, tensors))
    dtypes = {t.name: t.dtype for t in made.spec.outputs}
    outputs = {n: _tensor(a, dtypes[n]) for n, a in found.items()}
    for name, (count, dim) in made.counts.items():
        outputs[name] = outputs[name].narrow(dim, 0, int(outputs[count]))
    return CallResult(
        returned(made, outputs, state, leaves),
        left_behind(made, outputs, state, leaves),
    )


def sizes_of(made: Imported, tensors: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The open sizes of a call, from the shapes of what it is given."""
    free = free_sizes(made.spec)
    found: dict[str, int] = {}
    for t in made.spec.inputs:
        if t.name not in tensors:  # what an external call gives
            continue
        for size, length in zip(t.shape, tensors[t.name].shape, strict=True):
            if isinstance(size, Size) and size.name in free:
                found.setdefault(size.name, length)
    return found


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach()
    return (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()


def _tensor(array: np.ndarray, dtype: str) -> torch.Tensor:
    made = torch.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)
    return made if dtype in FLOATS else made.to(TORCH[dtype])
