"""The clock of a device, as the solution's process reads it. The judge holds it against its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from backends.gpu.device.gpu import CudaDevice

IDLE_RUNS = 30
# Which set of inputs a call gets, and by what its floats are multiplied.
Plan = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class EventClock:
    """Cold calls between device events. Its parts are looked up when it is made, before a solution is
    loaded."""

    flush: Callable[[], None]
    mark: Callable[[], Any]
    us_between: Callable[[Any, Any], float]
    wait: Callable[[], None]
    now: Callable[[], float]

    @staticmethod
    def of(place: torch.device) -> EventClock | None:
        """That of a device; None for the processor, whose times are not taken."""
        if place.type == "cpu":
            return None
        gpu = CudaDevice()
        return EventClock(gpu.flush, gpu.mark, gpu.us_between, gpu.wait, gpu.now)

    def idle(self, sets: Sequence[Sequence[Any]]) -> float:
        """Microseconds by the host's clock of a run that calls nothing: filling inputs, the flush, marks."""
        plan = [(n % len(sets), 1.0) for n in range(IDLE_RUNS)]
        self.times(lambda *_: None, sets, plan)
        before = self.now()
        self.times(lambda *_: None, sets, plan)
        return 1e6 * (self.now() - before) / IDLE_RUNS

    def times(
        self, call: Callable[..., Any], sets: Sequence[Sequence[Any]], plan: Plan
    ) -> tuple[list[float], list[Any]]:
        """Microseconds of each call of a plan, and a copy of the last result of each set.

        No call has what an earlier one had, in the same memory: one that returns what it has kept is wrong.
        What is copied was computed when the clock stopped.
        """
        given = [tree_map(_own, list(s)) for s in sets]
        marks, results = [], [None] * len(sets)
        for n, factor in plan:
            _fill(given[n], sets[n], factor)
            self.flush()
            start = self.mark()
            results[n] = call(*given[n])
            marks.append((start, self.mark()))
        copies = [tree_map(_own, r) for r in results]
        self.wait()
        return [self.us_between(a, b) for a, b in marks], copies


def _own(value: Any) -> Any:
    """A tensor's copy. What is a subclass of one stays: to copy it could compute."""
    return value.detach().clone() if type(value) in _TENSORS else value


_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _fill(own: Sequence[Any], given: Sequence[Any], factor: float) -> None:
    """Makes inputs those of a set, whatever the last call left there."""
    leaves, _ = tree_flatten(list(given))
    for mine, value in zip(tree_flatten(list(own))[0], leaves, strict=True):
        if not isinstance(value, torch.Tensor):
            continue
        if value.is_floating_point() and value.element_size() > 1:
            torch.mul(value, factor, out=mine)
        else:  # integers are positions as often as numbers
            mine.copy_(value)
