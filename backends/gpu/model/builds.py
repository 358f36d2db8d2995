"""Compiled launches: their resources, whether a device can run them, and their static figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.backend import BackendError
from backends.gpu.assembly.mix import Code
from machines.gpu.occupancy import programs_per_unit


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """One compiled launch."""

    name: str
    programs: int  # thread blocks in the grid
    warps: int
    stages: int
    shared: int  # bytes of shared memory of one thread block
    seconds: float  # of compile time
    code: Code


def check_limits(one: CompiledLaunch, table: Mapping[str, Any]) -> None:
    """Raises BackendError("build") for a launch that compiles but that the device cannot run."""
    most, threads = table["shared_bytes_per_program"], one.warps * table["warp"]
    if one.shared > most:
        raise BackendError(
            "build", f"{one.name} needs {one.shared} bytes of shared memory; there are {most}"
        )
    if threads > table["threads_per_program"]:
        raise BackendError(
            "build",
            f"{one.name} has {one.warps} warps, {threads} threads; "
            f"a program may have {table['threads_per_program']}",
        )
    if one.code.registers > table["registers_per_thread"]:
        raise BackendError(
            "build",
            f"{one.name} needs {one.code.registers} registers; "
            f"a thread may have {table['registers_per_thread']}",
        )
    if not programs_per_unit(table, one.code.registers, one.shared, one.warps).programs:
        raise BackendError(
            "build",
            f"{one.name} fits no unit: {one.code.registers} registers in {one.warps} warps, "
            f"{one.shared} bytes of shared memory",
        )


def figures(done: Sequence[CompiledLaunch], table: Mapping[str, Any]) -> dict[str, float]:
    """Static figures: of each launch as `<launch>.<figure>`, and over all launches by plain names."""
    found: dict[str, float] = {}
    for one in done:
        held = programs_per_unit(table, one.code.registers, one.shared, one.warps)
        facts = {
            "registers": one.code.registers,
            "spills": one.code.spills,
            "shared_bytes": one.shared,
            "occupancy": held.share,
            "programs": held.programs,
            "warps": one.warps,
            "stages": one.stages,
            "grid": one.programs,
            "instructions": len(one.code.classes),
        }
        facts |= {f"mix.{name}": n for name, n in one.code.mix().items()}
        facts |= {f"loop.{name}": n for name, n in one.code.loop_mix().items()}
        found |= {f"{one.name}.{name}": float(n) for name, n in facts.items()}
    for name in ("registers", "spills", "shared_bytes"):
        found[name] = max(found[f"{one.name}.{name}"] for one in done)
    found["occupancy"] = min(found[f"{one.name}.occupancy"] for one in done)
    found["compile_seconds"] = sum(one.seconds for one in done)
    return found
