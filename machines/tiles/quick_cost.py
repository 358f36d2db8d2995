"""Quick cost of a nest on processing elements, from its statements."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from ir.estimate.traffic import traffic
from ir.machine import Machine
from ir.nest.nest import LoopNest
from ir.sizes import bind

OVERLAP_LOSS = 0.05  # share of overlappable work that does not overlap


def quick_us(nest: LoopNest, machine: Machine, sizes: Mapping[str, int]) -> float:
    """An estimate of a nest's time in microseconds.

    The longest of: compulsory traffic over the memory bandwidth, moved bytes over the cache
    bandwidth, and the busiest engine of the busiest processing element plus the latency of a chain
    of steps. A small share of all overlapped work is added. A launch of a recurrence counts once
    for each step.
    """
    bound = bind(nest.spec, sizes)
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
