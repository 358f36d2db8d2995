"""The occupancy bounds of a launch: the least number of wavefronts on a SIMD.

The compiler does not know the dynamic LDS of a block, and gives matmuls more registers than two
wavefronts can have. If the LDS has space for several blocks, the compiler is told to leave
registers for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from backends.gpu.source.layouts import BYTES
from backends.gpu.source.view import macros, shared_bytes
from backends.gpu.threads.constants import constant
from backends.gpu.threads.thread import Launch, Multiply, statements
from backends.gpu.tile import Name
from ir.machine import Machine
from machines.gpu.facts import WORD, facts

BESIDE = 64  # registers of a matmul besides its operands and values, and twice its results


def waves_per_eu(launch: Launch, sizes: Mapping[str, float], machine: Machine) -> int:
    """The least number of wavefronts on a SIMD. sizes: those that the launch is tuned for."""
    table = facts(machine)
    waves, simds = launch.threads // launch.warp, table["partitions"]
    least = max(1, waves // simds)
    if launch.registers:  # set by the schedule
        most = table["warps_per_unit"] // simds
        return max(least, min(most, table["registers_per_thread"] // launch.registers))
    matmuls = [
        s
        for s in statements((*launch.once, *launch.body))
        if isinstance(s, Multiply) and s.instruction
    ]
    known = {n: v for n, v in macros(launch, sizes).items() if isinstance(n, Name)}
    results = _words(launch, {s.to for s in matmuls}, known)
    if not results:
        return least
    operands = {n for s in matmuls for n in (s.a, s.b)}
    operands |= {f.name for f in launch.fragments if f.name.sort == "value"}
    others = _words(launch, operands - {s.to for s in matmuls}, known)
    taken = shared_bytes(launch, known)
    blocks = table["shared_bytes_per_unit"] // taken if taken else table["warps_per_unit"] // waves
    by_registers = table["registers_per_thread"] // (2 * results + others + BESIDE)
    return max(least, min(blocks * waves // simds, by_registers))


def _words(launch: Launch, names: Collection[Name], known: Mapping[Name, int]) -> int:
    """The 32-bit registers of fragments. known: the constants of the launch."""
    total = 0
    for f in launch.fragments:
        if f.name in names:
            repeats = (-(-constant(a.width, {}, known) // a.span) for a in f.axes)
            count = prod(a.register.size * n for a, n in zip(f.axes, repeats, strict=True))
            total += -(-count * BYTES[f.dtype] // WORD)
    return total
