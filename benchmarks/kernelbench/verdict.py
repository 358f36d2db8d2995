"""The verdict on a problem's results: against the module in float64, and against PyTorch's own
error.

A result is correct under two rules. Each element is within KernelBench's tolerance of float64's
(`eval.py` there: an absolute and a relative one, 1e-4 for f32). Its error is not much larger than
PyTorch's own: twice the limit of `backends/tolerance.py`, because a module adds long sums in any
order and its layers propagate errors. If PyTorch itself misses KernelBench's tolerance, only the
second rule decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from benchmarks.against_float64 import Verdict, judged, pieces
from frontends.dtypes import NAMES
from ir.reference.reference import NARROWEST

TIMES = 2.0  # Factor on the limit of `backends/tolerance.py`.
CLOSE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}


@dataclass(frozen=True, slots=True)
class ThreeResults:
    """The results of one call in three ways."""

    got: Any  # Ours.
    plain: Any  # PyTorch's at the problem's dtypes.
    truth: Any  # Float64's.


def verdict(trials: Sequence[ThreeResults]) -> Verdict:
    """Returns the worst verdict of all results of some calls, with the first reason for which one
    is wrong."""
    found = [v for trial in trials for v in _results(trial)]
    reason = next((v.reason for v in found if v.reason), "")
    return Verdict(
        max((v.rel_err for v in found), default=0.0),
        max((v.reference_rel_err for v in found), default=0.0),
        reason if found else "there are no results",
    )


def _results(trial: ThreeResults) -> list[Verdict]:
    (got, ours), (plain, _), (truth, theirs) = map(
        tree_flatten, (trial.got, trial.plain, trial.truth)
    )
    if ours != theirs:
        return [Verdict(float("inf"), 0.0, f"the results are {ours}, not {theirs}")]
    return [_result(*leaves) for leaves in zip(got, plain, truth, strict=True)]


def _result(got: Any, plain: Any, truth: Any) -> Verdict:
    if not isinstance(truth, torch.Tensor):
        return Verdict(0.0, 0.0, "" if got == truth else f"a result is {got!r}, not {truth!r}")
    if got.dtype != plain.dtype:
        return Verdict(float("inf"), 0.0, f"a result is {got.dtype}, not {plain.dtype}")
    precision = NAMES[plain.dtype] if NAMES[plain.dtype] in NARROWEST else "f32"
    made = judged(NAMES[plain.dtype], precision, got, plain, truth, TIMES)
    if made.reason or not truth.is_floating_point():
        return made
    most = CLOSE[plain.dtype]
    if _close(plain, truth, most) and not _close(got, truth, most):
        far = max(float((g.double() - t).abs().max()) for g, t in pieces(got, truth))
        return Verdict(made.rel_err, made.reference_rel_err, f"an element is off by {far:.3g}")
    return made


def _close(a: torch.Tensor, b: torch.Tensor, most: float) -> bool:
    return all(
        torch.allclose(x.double(), y, rtol=most, atol=most, equal_nan=True) for x, y in pieces(a, b)
    )
