"""A glance at a candidate before its check: most candidates are slower than the fastest and end
there."""

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

# A candidate that takes longer than TOO_SLOW times the fastest is not checked. The median of a
# glance is accurate to a few percent, and such a candidate rarely leads to a faster kernel.
TOO_SLOW = 1.25
# A build is stopped after PATIENCE times the longest build of kernels that are about as fast as the
# fastest, but not before LEAST_PATIENCE seconds. Nearly all longer builds have large tiles whose
# values do not fit into registers.
PATIENCE, LEAST_PATIENCE = 4.0, 2.0


@dataclass(frozen=True, slots=True)
class Fastest:
    """Data of the fastest correct candidate of a backend."""

    us: float  # its time in microseconds
    # longest build of candidates that are about as fast, in seconds; 0 if unknown
    build_s: float = 0.0

    @property
    def patience(self) -> float | None:
        """Seconds that another build may take; None if unknown."""
        return max(LEAST_PATIENCE, PATIENCE * self.build_s) if self.build_s else None


class TooSlow(Exception):
    """Raised for a candidate that is too slow to be checked."""

    def __init__(self, us: float, fastest_us: float):
        times = us / fastest_us
        super().__init__(f"it takes about {us:.4g} us, {times:.3g} times as long as the fastest")
        self.us = us


@dataclass(frozen=True, slots=True)
class Glanced:
    """The build for one shape."""

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
    """Raises TooSlow if a candidate takes much longer than the fastest, in the mean over all
    shapes."""
    enough, times = TOO_SLOW * fastest_us, []
    for one in shapes:
        sizes, inputs = one.where.shape.sizes, timed_inputs(backend, machine, one.where)
        with turns.alone():
            times.append(backend.glance(one.built, one.nest, machine, sizes, inputs, enough))
    us = mean(times, [one.where.shape for one in shapes])
    if us > enough:
        raise TooSlow(us, fastest_us)


def timed_inputs(backend: Backend | Glances, machine: Machine, where: TimedShape) -> Arrays:
    """The inputs of a timed shape."""
    return unchanging(where.inputs.drawn()) if leaves_inputs(backend, machine) else where.inputs


def to_ask(asked: Candidate, fastest: Fastest | None) -> bytes:
    """The message to a worker and its child for a candidate. fastest: of its backend; None if
    unknown."""
    return json.dumps([asked.table(), asdict(fastest) if fastest else None]).encode()


def asked_of(said: bytes) -> tuple[Candidate, Fastest | None]:
    """The candidate of a message by `to_ask`."""
    table, fastest = json.loads(said)
    return candidate(table), Fastest(**fastest) if fastest else None
