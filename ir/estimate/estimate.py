"""Estimates the time of a loop nest, to rank schedules before any of them runs."""

from __future__ import annotations

from collections.abc import Mapping

from ir.estimate.traffic import traffic
from ir.machine import Machine
from ir.nest.footprint import on_chip_bytes
from ir.nest.nest import LoopNest
from ir.sizes import bind


def estimate(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> float:
    """The estimated microseconds of a nest: the quick cost of the machine's class."""
    return machine.model.quick_us(nest, machine, sizes)


def intensity(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> dict[str, float]:
    """Features that distinguish candidates.

    These are bytes of on-chip memory, and launches, tiles and bytes moved over all steps of
    recurrences.
    """
    bound = bind(nest.spec, sizes)
    all_traffic = [
        (launch.times(bound), traffic(launch, machine, bound)) for launch in nest.launches
    ]
    return {
        "launches": float(sum(times for times, _ in all_traffic)),
        "tiles": float(sum(times * t.tiles for times, t in all_traffic)),
        "on_chip_bytes": float(
            max(on_chip_bytes(launch, machine, bound) for launch in nest.launches)
        ),
        "moved_bytes": float(sum(times * t.moved for times, t in all_traffic)),
    }
