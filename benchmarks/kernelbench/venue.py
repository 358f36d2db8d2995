"""A venue: the machine of a contest, which is a device or a rehearsal."""

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

Options = Mapping[str, Any]  # Options of torch.compile.

SECONDS = 0.1  # Approximate time of the measured calls, in seconds, and their minimum number.
LEAST_RUNS = 12


@dataclass(frozen=True, slots=True)
class Venue:
    """Where modules run and are timed."""

    place: str  # PyTorch's name of the device.
    timed: Callable[[TimedCall, Sequence[Any]], RaceTimes]  # Times a call on sets of inputs.
    # Returns the name of each launch on the device during a call.
    seen: Callable[[TimedCall, Sequence[Any]], list[str]]
    # Returns the launches of `seen` with their microseconds.
    launches: Callable[[TimedCall, Sequence[Any]], list[tuple[str, float]]]
    modes: Mapping[str, Options]  # Options of each baseline's compilation, by its name.
    free: Callable[[], int]  # Returns the free memory in bytes.
    settled: Callable[[], None]  # Returns when the device is idle.
    time_kind: str  # Kind of the times.


def device() -> Venue:
    """Returns the machine's own GPU."""
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
    """Returns a rehearsal on the CPU, to try a command without a device.

    Kernels are interpreted, there is no profile, and every call takes the same fixed time.
    """
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
    """Returns a rehearsal or the device."""
    return rehearsal() if rehearsed else device()


def facts(rehearsed: bool) -> dict[str, Any]:
    """Returns the facts about the machine for a result file. Call it in a child process."""
    return {"machine": "a rehearsal on the CPU"} if rehearsed else machine_room.facts()
