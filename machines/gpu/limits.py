"""Checks of decisions against a chip: register limits, thread roles, cache hints."""

from __future__ import annotations

from ir.errors import KernelError
from ir.machine import Machine
from ir.schedule import Decision
from machines.gpu.facts import facts

LEAST_REGISTERS = 32  # a thread with fewer can hold little more than addresses
PRODUCERS = 128  # threads of a block that issue bulk copies, where a language has producers
LEAST_GIVEN, MOST_GIVEN = 24, 88  # registers of a producer thread


def register_limits(
    machine: Machine, threads: int = 0, held: int = 0, bulk: bool = False
) -> tuple[int, ...]:
    """The register limits that change the occupancy, largest first: one more register per thread,
    and a multiprocessor would hold one block less.

    threads: of a block; 0: one warp for each partition. held: elements of an accumulator, which the
    threads hold in addition to the least. bulk: whether the block may have producers, which take
    registers of the same multiprocessor.
    """
    if "gpu" not in machine.details:
        return ()
    table = facts(machine)
    threads = threads or table["partitions"] * machine.warp
    step, most = table["register_granularity"], table["registers_per_thread"]
    least = LEAST_REGISTERS + -(-held // threads)
    most = min(most, table["registers_per_unit"] // (threads + bulk * PRODUCERS) + 1)
    found = []
    for blocks in range(1, table["warps_per_unit"] * machine.warp // threads + 1):
        limit = table["registers_per_unit"] // (threads * blocks) // step * step
        if least <= limit < most:
            found.append(limit)
    return tuple(dict.fromkeys(found))


def check_decision(decision: Decision, machine: Machine) -> None:
    """Raises KernelError where a decision asks for what the chip does not have."""
    if decision.verb == "registers":
        _check_registers(decision, machine)
    if decision.verb == "roles":
        _check_roles(decision, machine)
    if decision.verb == "cache":
        _check_hints(decision, machine)


def _check_hints(decision: Decision, machine: Machine) -> None:
    known = cache_hints(machine)
    for _, hint in decision.options:
        if hint not in known:
            raise KernelError(
                f"`{machine.name}` has no hint `{hint}` to its caches",
                place=decision.place,
                allowed=", ".join(known) or "none: no `cache_hints` of its file names one",
                hint=f"drop {decision}",
            )


def cache_hints(machine: Machine) -> tuple[str, ...]:
    """The cache hints that loads and stores of a chip take, in the language of its backend."""
    own = machine.details.get(machine.rendering.backend, {})
    return tuple(own.get("cache_hints") or machine.details.get("gpu", {}).get("cache_hints", ()))


def _check_roles(decision: Decision, machine: Machine) -> None:
    """Producers are a few whole warps that only issue copies. Registers move between whole warpgroups."""
    count, own = decision.number("producers"), decision.number("registers", 0)
    step = machine.details.get("gpu", {}).get("register_granularity", 8)
    if count not in (32, 64, PRODUCERS) or count % machine.warp:
        raise KernelError(
            f"`producers={count}` is no number of threads that start copies",
            place=decision.place,
            allowed=f"32, 64, {PRODUCERS}, in whole warps",
            hint=f"drop {decision}",
        )
    if own and (count != PRODUCERS or own % step or not LEAST_GIVEN <= own <= MOST_GIVEN):
        raise KernelError(
            f"`registers={own}` of each of {count} producers cannot be decided",
            place=decision.place,
            allowed=f"multiples of {step} from {LEAST_GIVEN} to {MOST_GIVEN}, with {PRODUCERS} producers, "
            "of which whole warpgroups give registers away",
            hint=f"drop registers={own}",
        )


def _check_registers(decision: Decision, machine: Machine) -> None:
    if "gpu" not in machine.details:
        return
    table, limit = facts(machine), decision.number("limit")
    step, most = table["register_granularity"], table["registers_per_thread"]
    if limit % step or not LEAST_REGISTERS <= limit <= most:
        raise KernelError(
            f"`limit={limit}` is no number of registers that a thread is given here",
            place=decision.place,
            allowed=f"multiples of {step} from {LEAST_REGISTERS} to {most // step * step}",
            hint=f"drop {decision}, and the compiler takes as many as it wants",
        )
