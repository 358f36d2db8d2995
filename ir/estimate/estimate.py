"""Estimate: how long a loop nest would take, from its text; ranks schedules before they run."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from ir.estimate.lanes import launch_us
from ir.estimate.traffic import traffic
from ir.machine import Machine
from ir.nest.footprint import scratch_bytes
from ir.nest.nest import LoopNest
from ir.sizes import bind

OVERLAP_LOSS = 0.05  # share of what should run side by side that does not


def estimate(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> float:
    """A first estimate of a nest's time in microseconds, to rank schedules of one spec by.

    The longest of: compulsory bytes over bandwidth, moved bytes over the cache's, and the
    busiest engine of the busiest tile processor, plus what a chain of steps waits and a small
    share of all that runs beside the longest; a launch of a recurrence as often as it has steps. Where programs have lanes, see `estimate_lanes`.
    """
    bound = bind(nest.spec, sizes)
    if machine.has_registers:
        return sum(
            launch.times(bound) * launch_us(launch, machine, bound) for launch in nest.launches
        )
    total = 0.0
    for launch in nest.launches:
        t = traffic(launch, machine, bound)
        rounds = ceil(t.tiles / machine.parallel)
        cache = machine.spaces.get("cache", machine.spaces["global"]).bytes_per_second
        memory = max(t.compulsory / machine.bandwidth, t.moved / cache)
        waiting = 1e-6 * machine.step_us * t.chain
        engines = rounds * (max(t.seconds.values(), default=0.0) + waiting)
        beside = OVERLAP_LOSS * (memory + rounds * sum(t.seconds.values()))
        once = machine.launch_us + 1e6 * (max(memory, engines) + beside) + machine.step_us
        total += launch.times(bound) * once
    return total


def intensity(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> dict[str, float]:
    """Facts of a nest by which candidates are told apart: launches, tiles and bytes moved, those
    of every step, and scratch bytes."""
    bound = bind(nest.spec, sizes)
    all_traffic = [
        (launch.times(bound), traffic(launch, machine, bound)) for launch in nest.launches
    ]
    return {
        "launches": float(sum(times for times, _ in all_traffic)),
        "tiles": float(sum(times * t.tiles for times, t in all_traffic)),
        "scratch_bytes": float(
            max(scratch_bytes(launch, machine, bound) for launch in nest.launches)
        ),
        "moved_bytes": float(sum(times * t.moved for times, t in all_traffic)),
    }
