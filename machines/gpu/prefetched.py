"""What a seed schedule prefetches: which values of a launch, and with how many stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ir.edits.stages import pipeline
from ir.machine import Machine
from ir.nest.nest import Dot, Launch, Load, Loop, Map, Statement, Tile
from ir.schedule import Decision
from machines.gpu.shared_memory import shared_bytes

STAGES = (3, 2)
AHEAD = 0.9  # share of shared memory for prefetched tiles: a backend needs some for itself


def prefetched(launch: Launch, stepped: Collection[str], mapped: bool) -> frozenset[str]:
    """Values loaded in a loop that feed a matmul there, or that a recurrence loop loads. mapped:
    also those from which an operand is computed."""
    found: set[str] = set()

    def walk(block: tuple[Statement, ...]) -> None:
        sources = {s.value: {s.value} for s in block if isinstance(s, Load)}
        for s in block:
            if isinstance(s, Map) and mapped:
                read = [n.value for n in s.expression.walk() if isinstance(n, Tile)]
                sources[s.value] = {x for n in read for x in sources.get(n, ())}
            elif isinstance(s, Dot):
                for tile in (s.a, s.b, *s.scales):
                    found.update(sources.get(tile.value, ()))
            elif isinstance(s, Loop):
                walk(s.body)

    for s in launch.body:
        if isinstance(s, Loop):
            walk(s.body)
            if s.index in stepped and s.tile == 1:
                found |= {x.value for x in s.body if isinstance(x, Load)}
    return frozenset(found)


def deepest(
    launch: Launch, names: Collection[str], machine: Machine, sizes: Mapping[str, int]
) -> tuple[Launch, list[Decision]]:
    """The launch with some values, by name, in as many stages as shared memory allows."""
    tensors = {v.tensor for v in launch.values if v.name in names}
    for stages in STAGES if names else ():
        deep = replace(
            launch,
            values=tuple(
                replace(v, stages=stages) if v.name in names else v for v in launch.values
            ),
        )
        if shared_bytes(deep, machine, sizes) <= AHEAD * machine.on_chip_bytes:
            return deep, [pipeline(t, stages) for t in sorted(tensors)]
    return launch, []
