"""Short calls by the judge's clock: many in one request, each with inputs that depend on the
previous result.

The solution's process does all of it: it makes inputs, calls, and sums results. It may do so in any
way, so nothing that it does is subtracted from its time. The time of a request over its calls is an
upper bound on the time of a call.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from statistics import median, quantiles
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from benchmarks.foreign.stopwatch import may_be_scaled
from benchmarks.foreign.sums import Sums

# Inputs that are made together, contiguous in memory, so that caches do not hold them.
TOGETHER, TOGETHER_BYTES = 256, 256 << 20
SEEDS = 1 << 40
# The standard error of a median of n normal values is this factor times their interquartile range
# over sqrt(n).
_OF_QUARTILES = 0.929


@dataclass(frozen=True, slots=True)
class Request:
    """Calls that one answer covers. seed: of their inputs, and of the weights of their sums."""

    seed: int
    calls: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls that share their draws. first: the number of its first call. shifts: of each call's
    weights."""

    first: int
    seed: int
    set: int
    shifts: list[int]


def batches(request: Request, sets: int, together: int) -> Iterator[Batch]:
    """Yields the batches of a request."""
    rng = random.Random(request.seed)
    for n, first in enumerate(range(0, request.calls, together)):
        calls = min(together, request.calls - first)
        shifts = [rng.randrange(SEEDS) for _ in range(calls)]
        yield Batch(first, rng.randrange(SEEDS), n % sets, shifts)


def counted(
    call: Callable[..., Any], drawn: Sequence[Drawn], request: Request, scales: Sequence[float]
) -> list[list[float]]:
    """Returns the sums over results of each call of a request.

    call: a solution, or a substitute.
    drawn: of each set of inputs.
    scales: factors of the sums of a call where the next call's inputs depend on them.

    A result is summed before the next call, which may return the same memory.
    """
    added: list[list[torch.Tensor]] = []
    with _uncollected():
        for batch in batches(request, len(drawn), drawn[0].together):
            inputs, sums = drawn[batch.set], Sums(batch.seed)
            draws = inputs.draws(batch.seed)
            for at, shift in enumerate(batch.shifts):
                given = inputs.filled(at, draws[at], added[-1] if added else [], scales)
                added.append(sums.of(call(*given), shift))
        # One copy to the host for each tensor of a result, not for each call.
        columns = [torch.stack(column).tolist() for column in zip(*added, strict=True)]
    return [list(each) for each in zip(*columns, strict=True)] if columns else [[] for _ in added]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disables garbage collection inside the context.

    Thousands of sums are kept. A collection would search all objects of PyTorch and take a large
    part of a request.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Drawn:
    """A set's inputs for many calls: floats are scaled along every axis, as `stopwatch.Inputs`
    scales them.

    The factors depend on a draw and on the sums of the previous call, so calls can only be made one
    after another.
    """

    def __init__(self, given: Sequence[Any]):
        self._leaves, self._structure = tree_flatten(list(given))
        tensors = [v for v in self._leaves if isinstance(v, torch.Tensor)]
        size = sum(v.numel() * v.element_size() for v in tensors)
        self.together = max(1, min(TOGETHER, TOGETHER_BYTES // max(1, size)))
        self._held = [self._room(v) for v in self._leaves]
        self._spans = [_spans(v) for v in self._leaves]
        exponents: list[float] = []
        for spans in self._spans:
            exponents += [-1.0 / max(1, len(spans))] * sum({size for size, _ in spans})
        device = tensors[0].device if tensors else torch.device("cpu")
        self._exponents = torch.tensor(exponents, dtype=torch.float32, device=device)

    def draws(self, seed: int) -> torch.Tensor:
        """Returns the draws that determine the factors of a batch's calls, one row for each."""
        rng = torch.Generator(self._exponents.device).manual_seed(seed)
        form, like = (self.together, self._exponents.numel()), self._exponents
        return torch.rand(form, generator=rng, dtype=like.dtype, device=like.device)

    def filled(
        self,
        at: int,
        draw: torch.Tensor,
        before: Sequence[torch.Tensor | float],
        scales: Sequence[float],
    ) -> list[Any]:
        """Returns the inputs of a batch's call. before: the sums of the previous call, on the
        device or on the host; empty for the first."""
        for total, scale in zip(before, scales if before else [], strict=True):
            draw = torch.add(draw, self._single(total), alpha=scale)
        factors = draw.remainder(1.0).mul_(self._exponents).exp2_()
        first, given = 0, []
        for value, held, spans in zip(self._leaves, self._held, self._spans, strict=True):
            mine = held[at] if isinstance(value, torch.Tensor) else value
            given.append(mine)
            if not isinstance(value, torch.Tensor):
                continue
            if not spans:
                mine.copy_(value)
            known: dict[int, torch.Tensor] = {}
            for axis, (size, form) in enumerate(spans):
                if size not in known:
                    known[size] = factors[first : first + size]
                    first += size
                torch.mul(mine if axis else value, known[size].view(form), out=mine)
        return tree_unflatten(given, self._structure)

    def _single(self, total: torch.Tensor | float) -> torch.Tensor:
        if isinstance(total, torch.Tensor):
            return total.float()
        return torch.tensor(total, dtype=torch.float32, device=self._exponents.device)

    def _room(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty((self.together, *value.shape), dtype=value.dtype, device=value.device)


def _spans(value: Any) -> list[tuple[int, list[int]]]:
    """Returns the size and the shape of the factors, for each axis that is scaled."""
    if not may_be_scaled(value):
        return []
    return [(size, [-1, *[1] * (value.ndim - 1 - axis)]) for axis, size in enumerate(value.shape)]


@dataclass(frozen=True, slots=True)
class PerCall:
    """The time of a call by the judge's clock, from several requests. All in microseconds."""

    us: float  # Median over requests of time over calls.
    within_us: float  # Twice its standard error, from the middle half of the requests.
    least_us: float  # Fastest and slowest request.
    most_us: float

    @staticmethod
    def of(requests: Sequence[Request], seconds: Sequence[float]) -> PerCall:
        """Computes the time from those of requests.

        It is not a slope over their lengths, because a process that waits in short requests would
        lower that. Time over calls can only grow with other work of a process.
        """
        each = [1e6 * s / r.calls for r, s in zip(requests, seconds, strict=True)]
        if len(each) == 1:
            return PerCall(each[0], float("inf"), each[0], each[0])
        first, _, third = quantiles(each, method="inclusive")
        within = 2 * _OF_QUARTILES * (third - first) / sqrt(len(each))
        return PerCall(median(each), within, min(each), max(each))

    def steady(self, share: float) -> bool:
        """Whether the median exceeds the fastest request by at most a share.

        The host delays some requests, and none takes less than its calls. If half of them differ,
        the time is unknown.
        """
        return self.us <= (1 + share) * self.least_us
