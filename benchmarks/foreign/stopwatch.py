"""The clock of a device, as the solution's process reads it. The judge compares it with its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from backends.gpu.device.gpu import CudaDevice
from benchmarks.foreign.frames import TENSORS
from benchmarks.foreign.sums import Sums

IDLE_RUNS, IDLE_TIMES = 50, 3
UNCHANGED = 0  # A draw that changes nothing.
# The set of inputs of each call, and the draw that scales its floats.
Plan = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Timed:
    """Calls that were timed."""

    us: list[float]  # Microseconds of each call by the device's events.
    sums: list[list[float]]  # Sums of each call's results.
    results: list[Any]  # A copy of the last result on each set, if there is one.


@dataclass(frozen=True, slots=True)
class EventClock:
    """Cold calls between device events.

    Its parts are looked up when it is made, before a solution is loaded.
    """

    flush: Callable[[], None]
    mark: Callable[[], Any]
    us_between: Callable[[Any, Any], float]
    wait: Callable[[], None]
    now: Callable[[], float]

    @staticmethod
    def of(place: torch.device) -> EventClock | None:
        """Returns the clock of a device. None for the CPU, which is not timed."""
        if place.type == "cpu":
            return None
        gpu = CudaDevice()
        return EventClock(gpu.flush, gpu.mark, gpu.us_between, gpu.wait, gpu.now)

    def idle(self, sets: Sequence[Sequence[Any]], result: Any) -> float:
        """Returns the microseconds by the host's clock of a run that calls nothing: filling inputs,
        the flush, marks, sums over a result. It is the maximum of a few."""
        plan = [(n % len(sets), 1 + n) for n in range(IDLE_RUNS)]
        found = []
        for _ in range(1 + IDLE_TIMES):
            before = self.now()
            self.times(lambda *_: result, sets, plan, 0)
            found.append(1e6 * (self.now() - before) / IDLE_RUNS)
        return max(found[1:])

    def times(
        self, call: Callable[..., Any], sets: Sequence[Sequence[Any]], plan: Plan, weights: int
    ) -> Timed:
        """Times each call of a plan. weights: the seed of the sums' weights.

        No call has the inputs of an earlier one in the same memory, and a sum of each result is
        reported. A solution that returns a stored result is therefore wrong. Copies and sums use
        what was computed when the clock stopped.
        """
        drawn, told = [Inputs(s) for s in sets], Sums(weights)
        marks, added, results = [], [], [None] * len(sets)
        for at, draw in plan:
            given = drawn[at].filled(draw)
            self.flush()
            start = self.mark()
            result = call(*given)
            marks.append((start, self.mark()))
            added.append(told.of(result, draw))
            if draw == UNCHANGED:  # Immediately, because each call may return the same memory.
                results[at] = tree_map(_own, result)
        self.wait()
        us = [self.us_between(a, b) for a, b in marks]
        return Timed(us, [[float(s) for s in each] for each in added], results)


class Inputs:
    """A set's inputs, made again for each call in the same memory."""

    def __init__(self, given: Sequence[Any]):
        self._given = list(given)
        self._own = tree_map(_own, list(given))
        self._scaled = [may_be_scaled(v) for v in tree_flatten(list(given))[0]]

    @property
    def vary(self) -> bool:
        """Whether draws change anything."""
        return any(self._scaled)

    def filled(self, draw: int) -> list[Any]:
        """Returns the inputs of a draw, whatever the last call left there.

        Each float is scaled by a factor of 0.5 to 1, which is the product of one factor for each
        axis index. So no result follows from that of another draw. Zeros, signs and the symmetry of
        a matrix stay.
        """
        leaves, _ = tree_flatten(self._given)
        pairs = zip(tree_flatten(self._own)[0], leaves, self._scaled, strict=True)
        for n, (mine, value, scaled) in enumerate(pairs):
            if isinstance(value, torch.Tensor):
                mine.copy_(value)
            if scaled and draw != UNCHANGED:
                for factor in _factors(value, draw + n):
                    mine.mul_(factor)
        return self._own


def _factors(value: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
    """Yields the factors of a tensor along each axis. Axes of one size have the same factors."""
    rng = torch.Generator(value.device).manual_seed(seed)
    known: dict[int, torch.Tensor] = {}
    for axis, size in enumerate(value.shape):
        if size not in known:
            drawn = torch.rand(size, generator=rng, dtype=torch.float32, device=value.device)
            known[size] = torch.exp2(-drawn / value.ndim)
        yield known[size].view(-1, *[1] * (value.ndim - 1 - axis))


def may_be_scaled(value: Any) -> bool:
    """Whether a value is a tensor of floats with an axis.

    Floats that are all integers may be labels or masks, so they are not scaled.
    """
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.ndim:
        return False
    return value.element_size() > 1 and not bool((value == value.round()).all())


def _own(value: Any) -> Any:
    """Returns a tensor's copy. A subclass of one is not copied, because copying it could
    compute."""
    return value.detach().clone() if type(value) in TENSORS else value
