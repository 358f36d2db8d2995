"""Short calls by the judge's clock: many in one request, each with inputs that follow from the last one's result.

The solution's process does all of it: it makes inputs, calls, adds up results. It might do so in any way it
likes, so nothing that it does is subtracted from its time. What a request takes over its calls is what a call
takes at most.
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

# Inputs that are made together, contiguous in memory, so that caches do not hold them
TOGETHER, TOGETHER_BYTES = 256, 256 << 20
SEEDS = 1 << 40
# The standard error of a median of n normal values is so many times the distance of their quartiles over sqrt(n).
_OF_QUARTILES = 0.929


@dataclass(frozen=True, slots=True)
class Request:
    """Calls that one answer covers. seed: of their inputs, and of the weights of their sums."""

    seed: int
    calls: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls that share what is drawn. first: the number of its first. shifts: of each call's weights."""

    first: int
    seed: int
    set: int
    shifts: list[int]


def batches(request: Request, sets: int, together: int) -> Iterator[Batch]:
    """The batches of a request."""
    rng = random.Random(request.seed)
    for n, first in enumerate(range(0, request.calls, together)):
        calls = min(together, request.calls - first)
        shifts = [rng.randrange(SEEDS) for _ in range(calls)]
        yield Batch(first, rng.randrange(SEEDS), n % sets, shifts)


def counted(
    call: Callable[..., Any], drawn: Sequence[Drawn], request: Request, scales: Sequence[float]
) -> list[list[float]]:
    """The sums over results of each call of a request.

    call: a solution, or its stand-in. drawn: of each set of inputs. scales: what the sums of a call are
    multiplied by where the next call's inputs follow from them. A result is added up before the next call,
    which may give the same memory.
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
    """Without collections of garbage: thousands of sums are kept, and a collection that looks through all that
    PyTorch has would take a good part of a request."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Drawn:
    """A set's inputs for many calls: floats are scaled along every axis, as `stopwatch.Inputs` scales them.

    By how much follows from a draw and from the sums of the call before, so calls can only be made one after
    another.
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
        """What the factors of a batch's calls follow from, a row for each."""
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
        """The inputs of a batch's call. before: the sums of the last call, on the device or as they were told;
        none before the first."""
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
    """Of each axis that is scaled, its size and the shape of its factors."""
    if not may_be_scaled(value):
        return []
    return [(size, [-1, *[1] * (value.ndim - 1 - axis)]) for axis, size in enumerate(value.shape)]


@dataclass(frozen=True, slots=True)
class PerCall:
    """What a call takes by the judge's clock, of several requests. All in microseconds."""

    us: float  # the median of requests, each its time over its calls
    within_us: float  # twice its standard error, by the middle half of the requests
    least_us: float  # of a request
    most_us: float

    @staticmethod
    def of(requests: Sequence[Request], seconds: Sequence[float]) -> PerCall:
        """Of what requests took.

        Not a slope over their lengths: who waits in short requests would lower that. Time over calls only grows
        by whatever a process does beside its work.
        """
        each = [1e6 * s / r.calls for r, s in zip(requests, seconds, strict=True)]
        if len(each) == 1:
            return PerCall(each[0], float("inf"), each[0], each[0])
        first, _, third = quantiles(each, method="inclusive")
        within = 2 * _OF_QUARTILES * (third - first) / sqrt(len(each))
        return PerCall(median(each), within, min(each), max(each))

    def steady(self, share: float) -> bool:
        """Whether the median is no longer than the fastest request by more than a share. The host delays some
        requests, and none takes less than its calls; where half of them differ, nothing is known."""
        return self.us <= (1 + share) * self.least_us
