"""Memory footprint of a launch: bytes of on-chip memory and registers, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ir.errors import KernelError
from ir.machine import Machine
from ir.memo import Recent, by_parts, kept
from ir.nest.nest import Dot, Launch, Loop, Map, Search, Statement, Take, Tile, Value
from ir.nest.steps import Step, Temporary, steps
from ir.sizes import value as number
from ir.spec import DTYPES


def value_bytes(value: Value, sizes: Mapping[str, int]) -> int:
    """Bytes of a value, with all of its pipeline stages."""
    slots = value.stages if value.slots is None else number(value.slots, sizes)
    return slots * DTYPES[value.dtype] * prod([number(a.extent, sizes) for a in value.axes])


def launch_steps(launch: Launch) -> tuple[Step, ...]:
    """The steps of every map of a launch, in order."""
    values = {v.name: v for v in launch.values}
    return tuple([x for m in launch.statements() if isinstance(m, Map) for x in steps(m, values)])


def temporaries(launch: Launch) -> tuple[Temporary, ...]:
    """The temporary tiles between the steps of a launch's maps, each once."""
    found = (s.to for s in launch_steps(launch) if isinstance(s.to, Temporary))
    return tuple(dict.fromkeys(found))


def on_chip_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> int:
    """Bytes of shared or local memory that one tile of a launch takes."""
    return machine.model.on_chip_bytes(launch, machine, sizes)


def register_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> int:
    """Bytes of registers that one tile of a launch takes at least; 0 on a machine without
    registers."""
    return machine.model.register_bytes(launch, sizes)


def require_fit(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> None:
    """Raises KernelError if a launch takes more on-chip memory or registers than the machine
    has."""
    known, key = _fitting(launch), tuple(sizes.items())
    if known.get(machine, key):
        return
    model = machine.model
    taken = model.on_chip_bytes(launch, machine, sizes)
    if taken > machine.on_chip_bytes:
        parts = model.on_chip_parts(launch, machine, sizes)
        raise _too_much(launch, machine, sizes, machine.on_chip, taken, parts)
    taken = model.register_bytes(launch, sizes)
    if taken and taken > machine.spaces["register"].bytes:
        parts = model.register_parts(launch, sizes)
        raise _too_much(launch, machine, sizes, "register", taken, parts)
    known.put(machine, key, True)


@kept
def _fitting(launch: Launch) -> Recent[Machine, bool]:
    """The machines and sizes at which a launch is known to fit."""
    return Recent()


def _too_much(
    launch: Launch,
    machine: Machine,
    sizes: Mapping[str, int],
    space: str,
    taken: int,
    parts: Mapping[str, int],
) -> KernelError:
    """The error for a space that is too small. parts: bytes by value."""
    largest = launch.value(max(parts, key=lambda name: parts[name]))
    axes = ", ".join(f"{a.name}={number(a.extent, sizes)}" for a in largest.axes)
    count = largest.stages if largest.slots is None else number(largest.slots, sizes)
    slots = f" x {count}" if space == machine.on_chip else ""
    return KernelError(
        f"`{launch.name}` needs {taken} bytes of `{space}`, the machine has "
        f"{machine.spaces[space].bytes}; the largest value is `{largest.name}`: "
        f"{largest.dtype}[{axes}]{slots}, {parts[largest.name]} bytes",
        hint="use a smaller tile" + (" or fewer stages" if slots else ""),
    )


@by_parts("once", "body")
def tables(launch: Launch) -> frozenset[str]:
    """Values that are searched or gathered from.

    They stay in global memory on machines with registers.
    """
    found = set()
    for s in launch.statements():
        if isinstance(s, Search):
            found.add(s.borders.value)
        elif isinstance(s, Take):
            found.add(s.table.value)
    return frozenset(found)


def touched(block: tuple[Statement, ...]) -> set[str]:
    """The values that a block reads, writes or accumulates into."""
    return {name for s in block for name in _names(s)}


@kept
def _names(s: Statement) -> tuple[str, ...]:
    match s:
        case Loop():
            return tuple(touched(s.body))
        case Dot():
            return (s.value, *(t.value for t in (s.a, s.b, *s.scales)))
        case Map():
            return (s.value, *(n.value for n in s.expression.walk() if isinstance(n, Tile)))
        case _:
            tiles = (getattr(s, f, None) for f in ("source", "table", "at", "borders"))
            return (getattr(s, "value", ""), *(t.value for t in tiles if t is not None))
