"""Footprint: the scratch that a launch takes, and whether a machine has it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest import Launch, Map, Value
from ir.sizes import value as number
from ir.spec import DTYPES
from ir.steps import Step, Temporary, steps


def value_bytes(value: Value, sizes: Mapping[str, int]) -> int:
    """Bytes of a value, all of its slots."""
    return value.depth * DTYPES[value.dtype] * prod(number(a.extent, sizes) for a in value.axes)


def launch_steps(launch: Launch) -> tuple[Step, ...]:
    """The steps of every map of a launch, in order."""
    values = {v.name: v for v in launch.values}
    return tuple(
        s for m in launch.statements() if isinstance(m, Map) for s in steps(m, values)
    )


def temporaries(launch: Launch) -> tuple[Temporary, ...]:
    """The tiles that lie between the steps of a launch, each once."""
    found = (s.to for s in launch_steps(launch) if isinstance(s.to, Temporary))
    return tuple(dict.fromkeys(found))


def scratch_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> int:
    """Bytes of scratch that one tile of a launch takes.

    On a machine with registers computed values live there; on one without, in scratch, with
    the temporaries between the steps.
    """
    if "register" in machine.spaces:
        return sum(value_bytes(v, sizes) for v in launch.values if v.loaded)
    extents = {a.name: a.extent for v in launch.values for a in v.axes}
    between = sum(
        DTYPES[t.dtype] * prod(number(extents[a], sizes) for a in t.axes)
        for t in temporaries(launch)
    )
    return between + sum(value_bytes(v, sizes) for v in launch.values)


def require_fit(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> None:
    """Raises KernelError where a launch takes more scratch than the machine has."""
    taken = scratch_bytes(launch, machine, sizes)
    if taken <= machine.scratch_bytes:
        return
    largest = max(launch.values, key=lambda v: value_bytes(v, sizes))
    axes = ", ".join(f"{a.name}={number(a.extent, sizes)}" for a in largest.axes)
    raise KernelError(
        f"`{launch.name}` needs {taken} bytes of `scratch`, the machine has "
        f"{machine.scratch_bytes}; the largest value is `{largest.name}`: {largest.dtype}[{axes}] "
        f"x {largest.depth}, {value_bytes(largest, sizes)} bytes",
        hint="use a smaller tile or a smaller depth",
    )
