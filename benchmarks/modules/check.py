"""Checks a compiled module: on held-out draws, against float64.

Our error may be slightly larger than that of PyTorch in the module's own dtype
(`benchmarks/kernelbench/verdict.py`). PyTorch in f32 replaces float64 if the module cannot be
called in float64, or if its own error is as large as its result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from benchmarks.against_float64 import Verdict, same_bits
from benchmarks.kernelbench.verdict import ThreeResults, verdict
from benchmarks.modules.entry import Arguments, MadeModule

NO_POWER = 0.5  # Beyond this relative error of PyTorch itself, its rule accepts anything.


def checked(
    made: MadeModule,
    ours: Callable[..., Any],
    seeds: Sequence[int],
    scales: Sequence[float],
    settled: Callable[[], None],
) -> dict[str, Any]:
    """Returns the fields of a row about correctness, with a reason if a draw's result is wrong.

    seeds: of the draws.
    scales: of floats, one for each draw.
    settled: returns when the device is idle.
    """
    truth = _Truth(made.module)
    draws: list[dict[str, Any]] = []
    for seed, scale in zip(seeds, scales, strict=True):
        arguments = made.arguments(seed, scale)
        kept = tuple(t.clone() for t in arguments)
        got = ours(*arguments)
        if not all(same_bits(a, b) for a, b in zip(arguments, kept, strict=True)):
            return {"reason": f"draw {seed}: the call changed its arguments"}
        found = truth.judged(got, made.module(*kept), kept)
        settled()
        draws.append(
            {
                "seed": seed,
                "scale": scale,
                "rel_err": found.rel_err,
                "reference_rel_err": found.reference_rel_err,
            }
        )
        if found.reason:
            break
    worst = max(draws, key=lambda d: d["rel_err"])
    fields = {
        "against": truth.name,
        "rel_err": worst["rel_err"],
        "reference_rel_err": worst["reference_rel_err"],
        "draws": draws,
    }
    if found.reason:
        fields["reason"] = f"draw {seed} times {scale:g}: {found.reason}"
    return fields


class _Truth:
    """The module in float64, else in f32. name: states which, and why."""

    def __init__(self, module: nn.Module):
        self.module, self.name, self.dtype = module, "float64", torch.float64
        self.wide = copy.deepcopy(module).double()

    def judged(self, got: Any, plain: Any, arguments: Arguments) -> Verdict:
        found = self._against(got, plain, arguments)
        if self.dtype == torch.float64 and found.reference_rel_err > NO_POWER:
            self._narrow(f"PyTorch's own error is {found.reference_rel_err:.2g} of the result")
            found = self._against(got, plain, arguments)
        if not found.reason and found.reference_rel_err > NO_POWER:
            why = f"PyTorch's own error is {found.reference_rel_err:.2g}: the check has no power"
            return Verdict(found.rel_err, found.reference_rel_err, why)
        return found

    def _against(self, got: Any, plain: Any, arguments: Arguments) -> Verdict:
        try:
            truth = self.wide(*(_as(self.dtype, t) for t in arguments))
        except Exception as error:  # For example a module that makes f32 tensors in its call.
            if self.dtype != torch.float64:
                raise
            self._narrow(f"float64 raises {type(error).__name__}: {error}".splitlines()[0][:200])
            return self._against(got, plain, arguments)
        return verdict([ThreeResults(got, plain, tree_map(_double, truth))])

    def _narrow(self, why: str) -> None:
        self.name, self.dtype = f"f32, as {why}", torch.float32
        self.wide = copy.deepcopy(self.module).float()


def _as(dtype: torch.dtype, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _double(item: Any) -> Any:
    floats = isinstance(item, torch.Tensor) and item.is_floating_point()
    return item.double() if floats else item
