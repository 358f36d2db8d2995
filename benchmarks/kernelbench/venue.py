"""A venue: what a contest needs of the machine that it is held on: a device, or a rehearsal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from backends.gpu.device.gpu import CudaDevice
from backends.gpu.device.nodes import DEVICE
from benchmarks import device as machine_room
from benchmarks.baselines import COMPILE_MODES
from benchmarks.timing import RaceTimes, TimedCall, measure

Options = Mapping[str, Any]  # of torch.compile

SECONDS = 0.1  # of measured calls, about, and at least so many
LEAST_RUNS = 12


@dataclass(frozen=True, slots=True)
class Venue:
    """Where modules run and are timed."""

    place: str  # torch's name of the device
    timed: Callable[[TimedCall, Sequence[Any]], RaceTimes]  # times a call on sets of inputs
    # Gives what runs on the device during a call, each launch's name
    seen: Callable[[TimedCall, Sequence[Any]], list[str]]
    # As `seen`, with the microseconds of each launch
    launches: Callable[[TimedCall, Sequence[Any]], list[tuple[str, float]]]
    modes: Mapping[str, Options]  # how a baseline is compiled, by its name
    free: Callable[[], int]  # bytes of memory that are left
    settled: Callable[[], None]  # returns when nothing is in progress there
    time_kind: str  # how times are had


def device() -> Venue:
    """The machine's own GPU."""
    modes = {n: {"mode": COMPILE_MODES[n], "dynamic": False} for n in COMPILE_MODES}
    return Venue(
        DEVICE,
        _measured,
        machine_room.launches_seen,
        machine_room.launches_timed,
        modes,
        _free,
        torch.cuda.synchronize,
        "measured",
    )


def rehearsal() -> Venue:
    """The CPU, where kernels are interpreted, no profile can be had, and every call takes the same
    made-up time: to try a command before it meets a device."""
    modes = {n: {"backend": "aot_eager"} for n in COMPILE_MODES}
    return Venue(
        "cpu",
        _made_up,
        _nothing_seen,
        _nothing_seen,
        modes,
        lambda: 1 << 40,
        lambda: None,
        "rehearsed",
    )


def _measured(call: TimedCall, sets: Sequence[Any]) -> RaceTimes:
    return measure(call, sets, CudaDevice(), SECONDS, LEAST_RUNS)


def _made_up(call: TimedCall, sets: Sequence[Any]) -> RaceTimes:
    call(*sets[0])
    return RaceTimes(us=100.0, p20=100.0, p80=100.0, runs=1, host_us=1.0, wall_us=100.0)


def _nothing_seen(call: TimedCall, inputs: Sequence[Any]) -> list[Any]:
    return []


def _free() -> int:
    return torch.cuda.mem_get_info()[0]


def venue(rehearsed: bool) -> Venue:
    """The one or the other."""
    return rehearsal() if rehearsed else device()


def facts(rehearsed: bool) -> dict[str, Any]:
    """What a result file says of the machine; to be called in a process of its own."""
    return {"machine": "a rehearsal on the CPU"} if rehearsed else machine_room.facts()
