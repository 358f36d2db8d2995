"""Compares a kernel's outputs on the device with those of float64, also at large shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backends.tolerance import EPSILON, FACTOR, FLOOR_ULPS, spread
from benchmarks.baselines import Baseline
from ir.reference.reference import NARROWEST
from ir.spec import EIGHT, FLOATS, Spec

PIECES = 16  # Number of pieces of a large reference.
PIECE = 1 << 26  # Elements that are compared at a time.
FEW = 32  # With no more elements, a root mean square is replaced by the largest error.


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a result is correct, and its error."""

    rel_err: float  # Norm of the difference over the norm of float64's result.
    reference_rel_err: float  # The same error of the plain baseline.
    reason: str = ""  # Why the result is not correct. Empty if it is.

    @property
    def correct(self) -> bool:
        return not self.reason


def exact(baseline: Baseline, spec: Spec, inputs: Sequence[Tensor]) -> Tensor:
    """Evaluates the baseline's function in float64; integers keep their dtypes.

    If the rows of the output are independent, it runs in pieces along the first dimension to save
    memory.
    """
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    if not baseline.rows or any(t.dtype not in FLOATS for t in spec.inputs):
        return baseline.call(*wide)
    first = spec.outputs[0].shape[0]
    cut = [bool(t.shape) and t.shape[0] == first for t in spec.inputs]
    count = next(t.shape[0] for t, along in zip(wide, cut, strict=True) if along)
    step = -(-count // PIECES)
    parts = [
        baseline.call(
            *(t[at : at + step] if along else t for t, along in zip(wide, cut, strict=True))
        )
        for at in range(0, count, step)
    ]
    return torch.cat(parts)


def judge(spec: Spec, got: Tensor, reference: Tensor, truth: Tensor) -> Verdict:
    """Returns the verdict on the only output of a spec. See `judged`."""
    used = {t.dtype for t in (*spec.inputs, *spec.outputs)}
    used |= {"bf16"} if used & set(EIGHT) else set()  # The same rule as in `ir.reference`.
    precision = next((d for d in NARROWEST if d in used), "f32")
    return judged(spec.outputs[0].dtype, precision, got, reference, truth)


def judged(
    dtype: str, precision: str, got: Tensor, reference: Tensor, truth: Tensor, times: float = 1.0
) -> Verdict:
    """Applies the gate of `backends.tolerance`.

    The root mean square error may be at most twice (f32) or three times (16-bit) that of the
    reference, plus a floor. The same holds for the largest error of one element; with few elements
    only this counts. Integers and values that are not finite must be equal.

    dtype: of the result.
    precision: the narrowest float of the computation.
    reference: the plain baseline at that precision.
    truth: the result in float64.
    times: a factor on the allowed error.
    """
    if got.shape != truth.shape:
        return Verdict(float("inf"), 0.0, f"the shape is {list(got.shape)}")
    if not truth.is_floating_point():
        wrong = int((got != truth).sum())
        return Verdict(0.0, 0.0, f"{wrong} integers differ" if wrong else "")
    sums = _Sums.of(got, reference, truth)
    factor = times * FACTOR[precision]
    unit = times * FLOOR_ULPS[dtype] * EPSILON[dtype]
    ratio = _over(sums.plain, sums.truth)
    if sums.lost:
        return Verdict(float("inf"), ratio, f"{sums.lost} elements are not finite")
    most = factor * sums.rms(sums.plain) + unit * sums.rms(sums.truth)
    one = most * spread(sums.rms(sums.plain), sums.worst_plain)
    reason = ""
    if sums.rms(sums.off) > most and truth.numel() >= FEW:
        reason = f"a root mean square error of {sums.rms(sums.off):.3g}; {most:.3g} is allowed"
    elif any(
        bool((_off(g, t) > one + unit * _finite(t).abs()).any()) for g, t in pieces(got, truth)
    ):
        reason = f"an element is off by {sums.worst:.3g}; about {one:.3g} is allowed"
    return Verdict(_over(sums.off, sums.truth), ratio, reason)


@dataclass(slots=True)
class _Sums:
    """Sums over all elements of a result.

    They are the squared errors of the result and of the reference, the squares of the truth, the
    two largest errors, and the number of elements that are not finite but should be.
    """

    count: int = 0
    off: float = 0.0
    plain: float = 0.0
    truth: float = 0.0
    worst: float = 0.0
    worst_plain: float = 0.0
    lost: int = 0

    @staticmethod
    def of(got: Tensor, reference: Tensor, truth: Tensor) -> _Sums:
        sums = _Sums(count=truth.numel())
        for g, r, t in pieces(got, reference, truth):
            off, plain = _off(g, t), _off(r, t)
            sums.lost += int((~off.isfinite()).sum())
            sums.off += float(off.square().sum())
            sums.plain += float(plain.square().sum())
            sums.truth += float(_finite(t).double().square().sum())
            sums.worst = max(sums.worst, float(off.max()))
            sums.worst_plain = max(sums.worst_plain, float(plain.max()))
        return sums

    def rms(self, squares: float) -> float:
        return (squares / self.count) ** 0.5 if self.count else 0.0


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same bits."""
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def named(spec: Spec, inputs: Sequence[Tensor]) -> Mapping[str, Tensor]:
    """Returns the inputs by name."""
    return dict(zip((t.name for t in spec.inputs), inputs, strict=True))


def _off(values: Tensor, truth: Tensor) -> Tensor:
    """Returns the errors of values. An error is 0 if both are NaN or the same infinity."""
    same = (values == truth) | (values.isnan() & truth.isnan())
    return (values.double() - truth).abs_().masked_fill_(same, 0.0)


def _finite(values: Tensor) -> Tensor:
    return values.where(values.isfinite(), 0.0)


def pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yields flat pieces of tensors of one shape. Pieces limit the memory that large tensors
    need."""
    flat = [t.detach().reshape(-1) for t in tensors]
    for at in range(0, flat[0].numel(), PIECE):
        yield tuple(t[at : at + PIECE] for t in flat)


def _over(error: float, truth: float) -> float:
    """Returns the norm of an error over that of a result, given their squares."""
    return (error / truth) ** 0.5 if truth else (float("inf") if error else 0.0)
