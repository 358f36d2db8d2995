"""Compares results with PyTorch's through float64. Random results are checked for their
properties."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.against_float64 import judged
from benchmarks.aten.call import OperatorCall
from frontends.dtypes import NAMES

DEVIATIONS = 6.0  # Limit of the error of a mean, in standard deviations of it.
_UNORDERED = ("sort", "topk")  # Equal elements may be in any order.


def fault(name: str, call: OperatorCall, got: Any) -> str:
    """Returns why the results of a call are wrong. Empty if they are correct."""
    ours, plain, truth = map(tree_leaves, (got, call.plain(), call(torch.float64)))
    if len(ours) != len(plain):
        return f"{len(ours)} results, not {len(plain)}"
    if name in PROPERTIES:
        return _shapes(ours, plain) or PROPERTIES[name](call, ours)
    if name in _UNORDERED:
        return _of(ours[0], plain[0], truth[0]) or _places(call.tensors[0], *ours)
    found = (_of(*leaves) for leaves in zip(ours, plain, truth, strict=True))
    return next((why for why in found if why), "")


def _shapes(ours: list[Any], plain: list[Any]) -> str:
    for a, b in zip(ours, plain, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"a result is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
    return ""


def _of(got: Any, plain: Any, truth: Any) -> str:
    got, plain, truth = map(_real, (got, plain, truth))
    if why := _shapes([got], [plain]):
        return why
    if not plain.is_floating_point():
        wrong = int((got != plain).sum())
        return f"{wrong} of {got.numel()} elements differ" if wrong else ""
    got, wide, truth = got.double(), plain.double(), truth.double()
    open_ = ~(wide.isfinite() & truth.isfinite())
    same = (got == wide) | (got == truth) | got.isnan() & (wide.isnan() | truth.isnan())
    if wrong := int((open_ & ~same).sum()):
        return f"{wrong} elements are not infinite or not a number as PyTorch's are"
    if bool(open_.all()):
        return ""
    dtype = NAMES[plain.dtype]
    return judged(dtype, dtype, got[~open_], wide[~open_], truth[~open_]).reason


def _real(item: Any) -> torch.Tensor:
    item = torch.as_tensor(item)
    return torch.view_as_real(item) if item.is_complex() else item


def _places(x: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> str:
    """Whether the indices are those of the values along some dimension, each once."""
    if not x.ndim:
        return "" if int(places) == 0 else "the place is not 0"
    for dim in range(x.ndim):
        others = [n for d, n in enumerate(x.shape) if d != dim]
        if others != [n for d, n in enumerate(values.shape) if d != dim]:
            continue
        once = all(
            len(row.unique()) == len(row)
            for row in places.movedim(dim, -1).reshape(-1, places.shape[dim])
        )
        inside = bool(((places >= 0) & (places < x.shape[dim])).all())
        if once and inside and _same(x.gather(dim, places), values):
            return ""
    return "the places are not those of the values"


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _uniform(call: OperatorCall, ours: list[torch.Tensor]) -> str:
    x = ours[0].double()
    if bool((x < 0).any() | (x > (1 if ours[0].element_size() < 4 else 1 - 2**-25)).any()):
        return "a number is not in [0, 1)"
    return _moments(x, 0.5, sqrt(1 / 12))


def _normal(call: OperatorCall, ours: list[torch.Tensor]) -> str:
    return _moments(ours[0].double(), *_parameters(call))


def _parameters(call: OperatorCall) -> tuple[float, float]:
    args = call.args
    floats = [a for a in args if isinstance(a, float)]
    return (floats[0], floats[1]) if len(floats) == 2 else (0.0, 1.0)


def _moments(x: torch.Tensor, mean: float, deviation: float) -> str:
    """Checks mean and standard deviation, and that the numbers differ."""
    allowed = DEVIATIONS * deviation / sqrt(x.numel())
    if abs(float(x.mean()) - mean) > allowed:
        return f"the mean is {float(x.mean()):.4g}, not {mean:g}"
    if abs(float(x.std()) - deviation) > allowed:
        return f"the standard deviation is {float(x.std()):.4g}, not {deviation:.4g}"
    return "" if len(x.unique()) > min(100, x.numel() // 2) else "the numbers are few"


def _permutation(call: OperatorCall, ours: list[torch.Tensor]) -> str:
    there = ours[0].sort().values
    return "" if torch.equal(there, torch.arange(len(there))) else "it is no permutation"


def _categories(call: OperatorCall, ours: list[torch.Tensor]) -> str:
    weights, drawn = call.tensors[0], ours[0]
    if bool((drawn < 0).any() | (drawn >= weights.shape[-1]).any()):
        return "a category is not there"
    if bool((weights.gather(-1, drawn) <= 0).any()):
        return "a category of weight 0 is drawn"
    replaced = call.args[2]
    rows = drawn.reshape(-1, drawn.shape[-1])
    if not replaced and any(len(row.unique()) != len(row) for row in rows):
        return "a category is drawn twice"
    if not replaced:
        return ""
    found = torch.bincount(drawn, minlength=weights.numel()) / drawn.numel()
    off = float((found - weights.float() / weights.sum().float()).abs().max())
    allowed = DEVIATIONS * 0.5 / sqrt(drawn.numel())
    return "" if off <= allowed else f"a frequency is off by {off:.3g}"


def _dropped(call: OperatorCall, ours: list[torch.Tensor]) -> str:
    (x, share, _), (result, mask) = call.args, ours
    expected = torch.where(mask, x.float() / (1 - share), 0).to(x.dtype)
    if not torch.allclose(result.float(), expected.float(), rtol=2 * torch.finfo(x.dtype).eps):
        return "the result is not the masked argument, scaled"
    kept, allowed = float(mask.float().mean()), DEVIATIONS * 0.5 / sqrt(mask.numel())
    return "" if abs(kept - (1 - share)) <= allowed else f"{kept:.3g} are kept, not {1 - share:g}"


PROPERTIES: dict[str, Callable[[OperatorCall, list[torch.Tensor]], str]] = {
    "rand": _uniform,
    "rand_like": _uniform,
    "randn": _normal,
    "randn_like": _normal,
    "normal": _normal,
    "randperm": _permutation,
    "multinomial": _categories,
    "native_dropout": _dropped,
}
