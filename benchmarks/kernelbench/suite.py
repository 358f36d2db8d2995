"""KernelBench's own check of a model: five draws of inputs, with a tolerance for each element.

It follows KernelBench's `eval.py`: seeds are drawn from one seed, both models are called on the
same inputs, and `torch.allclose` has one number, by dtype, as absolute and relative tolerance.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from benchmarks.against_float64 import pieces
from benchmarks.kernelbench.verdict import CLOSE

SEED = 42
TRIALS = 5


def trial_seeds() -> list[int]:
    """Returns the seeds of the inputs of each trial."""
    rng = torch.Generator().manual_seed(SEED)
    return [int(torch.randint(0, 2**32 - 1, (1,), generator=rng)) for _ in range(TRIALS)]


def fault(got: Any, expected: Any) -> str:
    """Returns why results differ from the expected ones. Empty if they are close enough."""
    (ours, structure), (theirs, wanted) = tree_flatten(got), tree_flatten(expected)
    if structure != wanted:
        return f"the results are {structure}, not {wanted}"
    found = (_leaf(a, b) for a, b in zip(ours, theirs, strict=True))
    return next((f for f in found if f), "")


def _leaf(got: Any, expected: Any) -> str:
    if not isinstance(expected, torch.Tensor):
        return "" if got == expected else f"a result is {got!r}, not {expected!r}"
    if got.shape != expected.shape:
        return f"a result is {list(got.shape)}, not {list(expected.shape)}"
    most = CLOSE.get(expected.dtype, 0.0)
    far, count = 0.0, 0
    for a, b in pieces(got, expected):
        near = torch.isclose(a.to(b.dtype), b, rtol=most, atol=most)
        if not bool(near.all()):
            off = (a.to(b.dtype) - b).abs()[~near].double()
            count += off.numel()
            far = max(far, float(off.nan_to_num(float("inf")).max()))
    if not count:
        return ""
    return f"{count} of {expected.numel()} elements are off, by up to {far:.3g}"
