"""PyTorch's own functions without the decisions in which they only refuse or warn of values.

`torch.distributions` looks at its parameters, `gaussian_nll_loss` at variances, and `cov` at the
number of samples. A trace has no values, and a kernel refuses none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch._C import DispatchKey
from torch.distributions import Distribution


@contextmanager
def unchecked() -> Iterator[None]:
    """Runs what is within without these decisions."""
    validates, loss = Distribution._validate_args, F.gaussian_nll_loss
    kernels = dict(torch.ops.aten.cov.default.py_kernels)
    Distribution.set_default_validate_args(False)
    F.gaussian_nll_loss = _with_any(loss)
    _set_kernels(kernels | {DispatchKey.CompositeImplicitAutograd: _cov})
    try:
        yield
    finally:
        Distribution.set_default_validate_args(validates)
        F.gaussian_nll_loss = loss
        _set_kernels(kernels)


def _with_any(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function, in which `torch.any`, by which it refuses values, finds none."""

    def run(*args: Any, **kwargs: Any) -> torch.Tensor:
        before = torch.any
        torch.any = lambda *_: False
        try:
            return function(*args, **kwargs)
        finally:
            torch.any = before

    return run


def _set_kernels(kernels: dict[Any, Any]) -> None:
    operator = torch.ops.aten.cov.default
    operator.py_kernels.clear()
    operator.py_kernels.update(kernels)
    operator._dispatch_cache.clear()


def _cov(
    self: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """The covariance of rows, whose columns are samples with weights."""
    rows = self if self.ndim == 2 else self.reshape(1, -1)
    whole = not (rows.is_floating_point() or rows.is_complex())
    rows = rows.to(torch.get_default_dtype()) if whole else rows
    weights = [w for w in (fweights, aweights) if w is not None]
    if not weights:
        apart = rows - rows.mean(1, keepdim=True)
        return (apart @ apart.mH / max(0, rows.shape[1] - correction)).squeeze()
    each = weights[0] if len(weights) == 1 else weights[0] * weights[1]
    total = each.sum()
    apart = rows - (rows * each).sum(1, keepdim=True) / total
    lost = correction * (each * aweights).sum() / total if aweights is not None else correction
    return ((apart * each) @ apart.mH / (total - lost).clamp(min=0)).squeeze()
