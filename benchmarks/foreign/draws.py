"""Draws: a problem's inputs, changed so that errors of range show. Only floats are changed.

NaN and infinity are not drawn, because KernelBench does not define the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

LARGE, TINY, SHIFT, EQUAL = 16.0, 2.0**-10, 1000.0, 0.75
_Tensors = list[torch.Tensor]


def changed(inputs: Sequence[Any], draw: str) -> list[Any] | None:
    """Returns the inputs of a draw. None if it would change nothing."""
    places = [n for n, v in enumerate(inputs) if _is_float(v)]
    if not places:
        return None
    given = [inputs[n] for n in places]
    made = [t.to(g.dtype) for t, g in zip(DRAWS[draw](given), given, strict=True)]
    if all(torch.equal(a, b) for a, b in zip(made, given, strict=True)):
        return None
    found = list(inputs)
    for n, tensor in zip(places, made, strict=True):
        found[n] = tensor
    return found


def nudged(inputs: Sequence[Any], seed: int) -> list[Any]:
    """Returns inputs that differ by up to half a unit in the last place. They are as valid as the
    originals."""
    rng = torch.Generator().manual_seed(seed)

    def off(value: Any) -> Any:
        if not _is_float(value):
            return value
        ulp = torch.finfo(value.dtype).eps / 2
        by = torch.rand(value.shape, generator=rng, dtype=torch.float64) * 2 - 1
        return (value.double() * (1 + ulp * by.to(value.device))).to(value.dtype)

    return [off(v) for v in inputs]


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0


def _all(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[_Tensors], _Tensors]:
    return lambda given: [change(t) for t in given]


def _first(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[_Tensors], _Tensors]:
    return lambda given: [change(given[0]), *given[1:]]


def _zero_rows(given: torch.Tensor) -> torch.Tensor:
    if given.ndim < 2:
        return given
    rows = given.clone().reshape(-1, given.shape[-1])
    rows[::2] = 0
    return rows.reshape(given.shape)


def _scaled_rows(given: torch.Tensor) -> torch.Tensor:
    if given.ndim < 2:
        return given
    rows = given.reshape(-1, given.shape[-1])
    powers = torch.arange(len(rows), device=given.device) * 5 % 13 - 6.0
    return (rows * 2.0 ** powers[:, None]).reshape(given.shape)


DRAWS: Mapping[str, Callable[[_Tensors], _Tensors]] = {
    "large": _all(lambda t: t * LARGE),
    "tiny": _all(lambda t: t * TINY),
    "shifted": _first(lambda t: t + SHIFT),
    "ties": _all(lambda t: (t * 4).round()),
    "equal": _all(lambda t: torch.full_like(t, EQUAL)),
    "zero_rows": _all(_zero_rows),
    "scaled_rows": _first(_scaled_rows),
}
