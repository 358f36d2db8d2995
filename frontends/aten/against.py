"""Against PyTorch: an operator's equations and PyTorch's own results on the CPU. For tests.

Both compute in float64: the equations through the reference of `ir/reference/reference.py`.
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
from ir.reference.reference import evaluate
from ir.spec import Number
from ir.verify import facts

_LOOSE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}  # rtol and atol


def meta_of(tensor: torch.Tensor) -> Meta:
    """What a tensor of known sizes is. A complex one is real, with a last dimension of 2 for the
    real and the imaginary part, as `torch.view_as_real` gives it."""
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return Meta(name_of(tensor.dtype), tuple(Number(n) for n in tensor.shape))


def tensors_of(result: Any) -> tuple[torch.Tensor | None, ...]:
    """The results of a call in order; None for one that it leaves out."""
    if isinstance(result, torch.Tensor):
        return (result,)
    if isinstance(result, bool):
        return (torch.tensor(result),)
    return tuple(t for t in result if t is None or isinstance(t, torch.Tensor))


def results(
    operator: OpOverload, *args: Any, seed: int = 0, **kwargs: Any
) -> tuple[tuple[torch.Tensor, ...], list[np.ndarray]]:
    """PyTorch's results of a call, and those of its equations; without those that the rule gives
    None for. seed: of random numbers."""
    expected = tensors_of(operator(*args, **kwargs))
    builder, held = Builder(), {}

    def placed(item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        meta = meta_of(item)
        value = builder.input("x", meta.dtype, meta.shape)
        held[value.name] = _array(item)
        return value

    args, kwargs = tree_map(placed, args), tree_map(placed, kwargs)
    held["seed"] = np.array([seed])
    out = tuple(None if t is None else meta_of(t) for t in expected)
    made = apply(builder, operator, args, kwargs, out)
    expected = tuple(t for t, value in zip(expected, made, strict=True) if value)
    return expected, _evaluated(builder, made, held)


def _evaluated(
    builder: Builder, made: tuple[Value | None, ...], held: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """The arrays, cut where their size depends on data."""
    kept = [v for v in made if v]
    copies = [builder.copy(v) for v in kept]  # a tensor is returned once at most
    counts = {v.name: builder.counts[v.name] for v in kept if v.name in builder.counts}
    totals = {name: builder.copy(builder.values[name]) for name, _ in counts.values()}
    spec = builder.spec("f", copies + list(totals.values()))
    facts(spec)
    found = evaluate(spec, {t.name: held[t.name] for t in spec.inputs}, {})
    arrays = [found[v.name] for v in copies]
    for n, value in enumerate(kept):
        if value.name in counts:
            name, dim = counts[value.name]
            arrays[n] = arrays[n].take(range(int(found[totals[name].name])), axis=dim)
    return arrays


def agree(
    operator: OpOverload, *args: Any, rtol: float = 1e-9, atol: float = 1e-11, **kwargs: Any
) -> None:
    """Raises AssertionError where the equations of a call give anything else than PyTorch. What
    PyTorch computes in fewer bits than float64 may differ by what those cannot hold."""
    expected, found = results(operator, *args, **kwargs)
    assert len(expected) == len(found)
    for theirs, ours in zip(expected, found, strict=True):
        theirs = torch.view_as_real(theirs) if theirs.is_complex() else theirs
        assert ours.shape == tuple(theirs.shape), f"{operator}: {ours.shape}, not {theirs.shape}"
        loose = _LOOSE.get(theirs.dtype, 0.0)
        np.testing.assert_allclose(
            ours, _array(theirs), max(rtol, loose), max(atol, loose), err_msg=str(operator)
        )


def _array(tensor: torch.Tensor) -> np.ndarray:
    """As numpy holds it, which has no bf16; a complex one as `meta_of` says."""
    tensor = tensor.detach()
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
