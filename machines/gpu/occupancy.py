"""Occupancy: how many thread blocks a multiprocessor (compute unit) holds at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many thread blocks share a multiprocessor, and what limits them."""

    programs: int  # thread blocks at once, 0 where not even one fits
    share: float  # their warps over the most that a multiprocessor holds, 0 to 1
    limit: str  # the limiting resource: registers, shared, warps or programs


def programs_per_unit(
    table: Mapping[str, int], registers: int, shared_bytes: int, warps: int
) -> Occupancy:
    """The occupancy of a kernel under the limits of a target's table.

    registers: 32-bit registers of one thread (all register files together). shared_bytes, warps: of
    one thread block. A multiprocessor has `partitions` parts, each with its own registers; a warp
    occupies one of them. The rules are those of the CUDA occupancy calculator, and of LLVM's waves
    per SIMD for AMDGPU.
    """
    parts = table["partitions"]
    thread = _up(max(registers, 1), table["register_granularity"])
    per_part = table["registers_per_unit"] // parts // (thread * table["warp"])
    held = min(table["warps_per_unit"], per_part * parts)
    slots = table["programs_per_unit"]
    if warps == 1:
        slots = table.get("programs_of_one_warp", slots)
    limits = {
        "registers": held // warps,
        "shared": _by_shared(table, shared_bytes),
        "warps": table["warps_per_unit"] // warps,
        "programs": slots,
    }
    if warps * table["warp"] > table["threads_per_program"]:
        limits["warps"] = 0
    if thread > _up(table["registers_per_thread"], table["register_granularity"]):
        limits["registers"] = 0
    least = min(limits.values())
    limit = next(k for k in ("warps", "programs", "shared", "registers") if limits[k] == least)
    return Occupancy(least, least * warps / table["warps_per_unit"], limit)


def _by_shared(table: Mapping[str, int], shared_bytes: int) -> int:
    """The thread blocks whose shared memory fits a multiprocessor."""
    if shared_bytes > table["shared_bytes_per_program"]:
        return 0
    taken = _up(shared_bytes + table["shared_reserved"], table["shared_granularity"])
    return table["shared_bytes_per_unit"] // taken if taken else table["warps_per_unit"]


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
