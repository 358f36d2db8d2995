"""A glance at a candidate before it is checked: most are slower than the fastest, and end there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from backends.backend import Arrays, Backend, Built, Glances
from backends.measure import leaves_inputs, unchanging
from backends.turns import Turns
from ir.machine import Machine
from ir.nest.nest import LoopNest
from search.core.candidate import Candidate, candidate
from search.core.workload import mean
from search.evaluator.shapes import TimedShape

# Times the fastest: what takes longer is not checked. The median of a glance is within a few percent, and
# what is so much slower is rarely a step on the way to a faster kernel.
TOO_SLOW = 1.25
# Times the longest build of what is about as fast as the fastest, and seconds at least: what takes longer to
# build is given up. Nearly all that is built so long has large tiles whose values do not fit into registers.
PATIENCE, LEAST_PATIENCE = 4.0, 2.0


@dataclass(frozen=True, slots=True)
class Fastest:
    """What is known of the fastest correct candidate of a backend."""

    us: float  # that it takes
    build_s: float = (
        0.0  # the longest build of those that take about as long; 0 where none is known
    )

    @property
    def patience(self) -> float | None:
        """Seconds that another build may take; None where that is not known."""
        return max(LEAST_PATIENCE, PATIENCE * self.build_s) if self.build_s else None


class TooSlow(Exception):
    """A candidate that is too slow to be checked."""

    def __init__(self, us: float, fastest_us: float):
        times = us / fastest_us
        super().__init__(f"it takes about {us:.4g} us, {times:.3g} times as long as the fastest")
        self.us = us


@dataclass(frozen=True, slots=True)
class Glanced:
    """What is built for a shape."""

    where: TimedShape
    nest: LoopNest
    built: Built


def require_fast(
    backend: Glances,
    machine: Machine,
    shapes: Sequence[Glanced],
    fastest_us: float,
    turns: Turns,
) -> None:
    """TooSlow where a candidate takes much longer than the fastest, over all shapes."""
    enough, times = TOO_SLOW * fastest_us, []
    for one in shapes:
        sizes, inputs = one.where.shape.sizes, timed_inputs(backend, machine, one.where)
        with turns.alone():
            times.append(backend.glance(one.built, one.nest, machine, sizes, inputs, enough))
    us = mean(times, [one.where.shape for one in shapes])
    if us > enough:
        raise TooSlow(us, fastest_us)


def timed_inputs(backend: Backend | Glances, machine: Machine, where: TimedShape) -> Arrays:
    """The inputs of a shape that is timed."""
    return unchanging(where.inputs.drawn()) if leaves_inputs(backend, machine) else where.inputs


def to_ask(asked: Candidate, fastest: Fastest | None) -> bytes:
    """What a worker, and its child, is told of a candidate. fastest: of its backend, None where nothing is
    known."""
    return json.dumps([asked.table(), asdict(fastest) if fastest else None]).encode()


def asked_of(said: bytes) -> tuple[Candidate, Fastest | None]:
    """What `to_ask` told."""
    table, fastest = json.loads(said)
    return candidate(table), Fastest(**fastest) if fastest else None
