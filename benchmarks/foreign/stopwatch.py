"""The clock of a device, as the solution's process reads it. The judge holds it against its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from backends.gpu.device.gpu import CudaDevice

IDLE_RUNS = 30
WARM_UP = 3


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

    def idle(self) -> float:
        """Microseconds by the host's clock of a run that calls nothing."""
        self.times(lambda: None, [()], WARM_UP)
        before = self.now()
        self.times(lambda: None, [()], IDLE_RUNS)
        return 1e6 * (self.now() - before) / IDLE_RUNS

    def times(
        self, call: Callable[..., Any], sets: Sequence[Sequence[Any]], runs: int
    ) -> tuple[list[float], list[Any]]:
        """Microseconds of each of some runs, on sets of inputs in turn; the last result of each set."""
        marks, results = [], [None] * len(sets)
        for n in range(runs):
            self.flush()
            start = self.mark()
            results[n % len(sets)] = call(*sets[n % len(sets)])
            marks.append((start, self.mark()))
        self.wait()
        return [self.us_between(a, b) for a, b in marks], results
