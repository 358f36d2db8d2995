"""Memory footprint of a launch: bytes of scratch (shared memory) and registers, and whether they
fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import Dot, Launch, Loop, Map, Search, Statement, Take, Tile, Value
from ir.nest.scratch import padded_bytes, scratch_parts, staged_values
from ir.nest.steps import Step, Temporary, steps
from ir.sizes import value as number
from ir.spec import DTYPES


def value_bytes(value: Value, sizes: Mapping[str, int]) -> int:
    """Bytes of a value, all of its pipeline stages."""
    return value.depth * DTYPES[value.dtype] * prod(number(a.extent, sizes) for a in value.axes)


def launch_steps(launch: Launch) -> tuple[Step, ...]:
    """The steps of every map of a launch, in order."""
    values = {v.name: v for v in launch.values}
    return tuple(s for m in launch.statements() if isinstance(m, Map) for s in steps(m, values))


def temporaries(launch: Launch) -> tuple[Temporary, ...]:
    """The temporary tiles between the steps of a launch's maps, each once."""
    found = (s.to for s in launch_steps(launch) if isinstance(s.to, Temporary))
    return tuple(dict.fromkeys(found))


def scratch_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> int:
    """Bytes of scratch that one program of a launch takes.

    With registers: matmul operands, tiles loaded ahead and bulk copies, padded to powers of two.
    Without: every value, and the temporaries between steps.
    """
    if "register" in machine.spaces:
        return sum(scratch_parts(launch, machine, sizes).values())
    extents = {a.name: a.extent for v in launch.values for a in v.axes}
    between = sum(
        DTYPES[t.dtype] * prod(number(extents[a], sizes) for a in t.axes)
        for t in temporaries(launch)
    )
    return between + sum(value_bytes(v, sizes) for v in launch.values)


def register_bytes(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> int:
    """A lower bound on the bytes of registers that one program takes, padded to powers of two; 0 on
    a machine without registers.

    It is the largest value at any statement, plus the values from before a loop that the loop uses.
    """
    if "register" not in machine.spaces:
        return 0
    held = register_values(launch, sizes)
    return max(_alive(block, held, {}) for block in (launch.once, launch.body))


def require_fit(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> None:
    """Raises KernelError where a launch takes more scratch or registers than the machine has."""
    taken = scratch_bytes(launch, machine, sizes)
    if taken > machine.scratch_bytes:
        if "register" in machine.spaces:
            parts = scratch_parts(launch, machine, sizes)
        else:
            parts = {v.name: value_bytes(v, sizes) for v in launch.values}
        raise _too_much(launch, machine, sizes, "scratch", taken, parts)
    taken = register_bytes(launch, machine, sizes)
    if taken and taken > machine.spaces["register"].bytes:
        raise _too_much(launch, machine, sizes, "register", taken, register_values(launch, sizes))


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
    slots = f" x {largest.depth}" if space == "scratch" else ""
    return KernelError(
        f"`{launch.name}` needs {taken} bytes of `{space}`, the machine has "
        f"{machine.spaces[space].bytes}; the largest value is `{largest.name}`: "
        f"{largest.dtype}[{axes}]{slots}, {parts[largest.name]} bytes",
        hint="use a smaller tile" + (" or a smaller depth" if slots else ""),
    )


def register_values(launch: Launch, sizes: Mapping[str, int]) -> dict[str, int]:
    """Bytes of each value that a machine with registers holds in them."""
    apart = staged_values(launch) | tables(launch)
    return {v.name: padded_bytes(v, sizes) for v in launch.values if v.name not in apart}


def tables(launch: Launch) -> set[str]:
    """Values that are searched or gathered from. They stay in global memory on machines with
    registers."""
    found = set()
    for s in launch.statements():
        if isinstance(s, Search):
            found.add(s.borders.value)
        elif isinstance(s, Take):
            found.add(s.table.value)
    return found


def _alive(block: tuple[Statement, ...], held: Mapping[str, int], kept: Mapping[str, int]) -> int:
    """A lower bound on the bytes that a block holds at once. kept: values that are live throughout
    it."""
    made: set[str] = set(kept)
    most = sum(kept.values())
    for s in block:
        if isinstance(s, Loop):
            # Values from before the loop that it uses stay live through all of its iterations.
            through = {n: held[n] for n in touched(s.body) if n in held and n in made}
            most = max(most, _alive(s.body, held, {**kept, **through}))
        else:
            name = getattr(s, "value", "")
            made.add(name)
            own = 0 if name in kept else held.get(name, 0)
            most = max(most, sum(kept.values()) + own)
    return most


def touched(block: tuple[Statement, ...]) -> set[str]:
    """The values that a block reads, writes or accumulates into."""
    return {name for s in block for name in _names(s)}


def _names(s: Statement) -> Iterator[str]:
    match s:
        case Loop():
            yield from touched(s.body)
        case Dot():
            yield from (s.value, s.a.value, s.b.value)
        case Map():
            yield s.value
            yield from (n.value for n in s.expression.walk() if isinstance(n, Tile))
        case _:
            yield getattr(s, "value", "")
            tiles = (getattr(s, f, None) for f in ("source", "table", "at", "borders"))
            yield from (t.value for t in tiles if t is not None)
