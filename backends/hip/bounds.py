"""The bounds of a launch: how many of its wavefronts a SIMD shall hold at the least.

The compiler does not see the dynamic LDS of a block, and gives matmuls more registers than two
wavefronts leave each other. Where LDS has room for several blocks, it is told to leave room, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from backends.gpu.source.layouts import registers
from backends.gpu.source.view import macros, shared_bytes
from backends.gpu.threads.thread import Launch, Multiply, statements
from backends.gpu.tile import Name
from ir.machine import Machine
from machines.gpu.facts import facts

BESIDE = 64  # registers of a matmul beside its results and as much again for operands


def waves_per_eu(launch: Launch, sizes: Mapping[str, float], machine: Machine) -> int:
    """The least wavefronts of a SIMD. sizes: those that the launch is tuned for."""
    table = facts(machine)
    waves, simds = launch.threads // launch.warp, table["partitions"]
    least = max(1, waves // simds)
    results = {
        s.to
        for s in statements((*launch.once, *launch.body))
        if isinstance(s, Multiply) and s.instruction
    }
    held = sum(
        prod(registers(a) or 1 for a in f.axes) for f in launch.fragments if f.name in results
    )
    if not held:
        return least
    known = {n: v for n, v in macros(launch, sizes).items() if isinstance(n, Name)}
    taken = shared_bytes(launch, known)
    blocks = table["shared_bytes_per_unit"] // taken if taken else table["warps_per_unit"] // waves
    by_registers = table["registers_per_thread"] // (2 * held + BESIDE)
    return max(least, min(blocks * waves // simds, by_registers))
