"""Against PyTorch: an operator's equations and PyTorch's own results on the CPU. For tests.

Both compute in float64: the equations through the reference of `ir/reference.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map

from frontends.aten.apply import apply
from frontends.builder import Builder, Meta, Value
from frontends.dtypes import name_of
from ir.reference import evaluate
from ir.spec import Number
from ir.verify import facts


def meta_of(tensor: torch.Tensor) -> Meta:
    """What a tensor of known sizes is."""
    return Meta(name_of(tensor.dtype), tuple(Number(n) for n in tensor.shape))


def tensors_of(result: Any) -> tuple[torch.Tensor, ...]:
    """The results of a call in order."""
    if isinstance(result, torch.Tensor):
        return (result,)
    return tuple(t for t in result if isinstance(t, torch.Tensor))


def results(
    operator: OpOverload, *args: Any, **kwargs: Any
) -> tuple[tuple[torch.Tensor, ...], list[np.ndarray]]:
    """PyTorch's results of a call, and those of its equations."""
    expected = tensors_of(operator(*args, **kwargs))
    builder, held = Builder(), {}

    def placed(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        meta = meta_of(item)
        value = builder.input("x", meta.dtype, meta.shape)
        held[value.name] = item.detach().numpy()
        return value

    args, kwargs = tree_map(placed, args), tree_map(placed, kwargs)
    made = apply(builder, operator, args, kwargs, tuple(map(meta_of, expected)))
    return expected, _evaluated(builder, made, held)


def _evaluated(
    builder: Builder, made: tuple[Value, ...], held: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    spec = builder.spec("f", list(made))
    facts(spec)
    found = evaluate(spec, {t.name: held[t.name] for t in spec.inputs}, {})
    names = [t.name for t in spec.outputs]
    return [found[name] for name in names]


def agree(
    operator: OpOverload, *args: Any, rtol: float = 1e-9, atol: float = 1e-11, **kwargs: Any
) -> None:
    """Raises AssertionError where the equations of a call give anything else than PyTorch."""
    expected, found = results(operator, *args, **kwargs)
    assert len(expected) == len(found)
    for theirs, ours in zip(expected, found, strict=True):
        np.testing.assert_allclose(
            ours, theirs.detach().numpy(), rtol=rtol, atol=atol, err_msg=str(operator)
        )
