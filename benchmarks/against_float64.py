"""A kernel's outputs on the device against float64's, large shapes included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backends.tolerance import EPSILON, FACTOR, FLOOR_ULPS, spread
from benchmarks.baselines import Baseline
from ir.reference.reference import NARROWEST
from ir.spec import EIGHT, FLOATS, Spec

PIECES = 16  # into which a large reference is cut
PIECE = 1 << 26  # elements that are judged at a time
FEW = 32  # elements of which a root mean square says no more than one does


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a result is right, and how far it is off."""

    rel_err: float  # norm of the difference over the norm of float64's result
    reference_rel_err: float  # the same for the plain baseline
    reason: str = ""  # why it is not correct, else empty

    @property
    def correct(self) -> bool:
        return not self.reason


def exact(baseline: Baseline, spec: Spec, inputs: Sequence[Tensor]) -> Tensor:
    """The baseline's function in float64; integers as they are. Cut along the first dimension
    of the output where its rows are independent, so that little memory is needed."""
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
    """The verdict on the only output of a spec; see `judged`."""
    used = {t.dtype for t in (*spec.inputs, *spec.outputs)}
    used |= {"bf16"} if used & set(EIGHT) else set()  # as `ir.reference` counts them
    precision = next((d for d in NARROWEST if d in used), "f32")
    return judged(spec.outputs[0].dtype, precision, got, reference, truth)


def judged(
    dtype: str, precision: str, got: Tensor, reference: Tensor, truth: Tensor, times: float = 1.0
) -> Verdict:
    """The gate of `backends.tolerance`: the root mean square error at most twice (f32) or three
    times (16-bit) the reference's plus a floor, one element's likewise, which alone counts where
    there are few; integers equal, and what is not finite.

    dtype: of the result.  precision: the narrowest float that it is computed in.  reference: the
    plain baseline at that precision.  truth: float64's.  times: what is allowed, in such gates.
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
    """Of a result, over all elements: squares of how far it is off, and plain arithmetic is, and of
    the truth; the largest of the first two; how many elements are not finite but should be."""

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
    """Whether two tensors hold the same bits."""
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def named(spec: Spec, inputs: Sequence[Tensor]) -> Mapping[str, Tensor]:
    """The inputs by name."""
    return dict(zip((t.name for t in spec.inputs), inputs, strict=True))


def _off(values: Tensor, truth: Tensor) -> Tensor:
    """How far values are off: 0 where both are the same infinity, or NaN."""
    same = (values == truth) | (values.isnan() & truth.isnan())
    return (values.double() - truth).abs_().masked_fill_(same, 0.0)


def _finite(values: Tensor) -> Tensor:
    return values.where(values.isfinite(), 0.0)


def pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Tensors of one shape, flat, some elements at a time: large ones leave room so."""
    flat = [t.detach().reshape(-1) for t in tensors]
    for at in range(0, flat[0].numel(), PIECE):
        yield tuple(t[at : at + PIECE] for t in flat)


def _over(error: float, truth: float) -> float:
    """The norm of an error over that of a result, from their squares."""
    return (error / truth) ** 0.5 if truth else (float("inf") if error else 0.0)
