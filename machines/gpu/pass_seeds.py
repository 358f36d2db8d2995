"""Seeds of kernels with several passes: a block rereads its rows while they are still in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verb_table import canonical
from ir.machine import Machine
from ir.nest.nest import Dot, Launch, Load, Loop, Statement, Store
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import DTYPES, Spec
from machines.gpu.launch_changes import KEPT
from machines.gpu.limits import cache_hints

# On an H200 a softmax of 4096 rows of 393,216 took 4.63 ms with all passes in ascending order. It
# took 4.44 ms with the second pass in descending order and with cache hints. A norm of rows of
# 65,535 took 6.12 ms and 5.42 ms.


def with_passes(
    spec: Spec, machine: Machine, sizes: Mapping[str, int], schedule: Schedule
) -> Schedule:
    """The schedule with every second loop over rows in reverse (serpentine), and with cache hints
    that keep what is read again until then. Returns the schedule unchanged where no block rereads
    its own data, or where the machine lacks the hints."""
    looped = {d.subject for d in schedule.of("place") if d.option("level") == "loop"}
    hints = machine.renders("cache") and set(KEPT) <= set(cache_hints(machine))
    if not looped or not hints or schedule.of("compute"):
        return schedule
    bound = bind(spec, sizes)
    nest = lower(spec, schedule, machine, sizes)
    made = dict.fromkeys(d for one in nest.launches for d in _decisions(one, machine, bound))
    known = {(d.verb, d.subject) for d in schedule.decisions}
    more = tuple(d for d in made if (d.verb, d.subject) not in known)
    found = canonical(replace(schedule, decisions=(*schedule.decisions, *more)))
    try:
        lower(spec, found, machine, sizes)
    except KernelError:  # a loop that has to run in order, or an access that takes no hint
        return schedule
    return found


def _decisions(launch: Launch, machine: Machine, sizes: Mapping[str, int]) -> Iterator[Decision]:
    if launch.repeat or any(isinstance(s, Dot) for s in launch.statements()):
        return
    room = machine.spaces["cache"].bytes
    bytes_of = {
        p.name: DTYPES[p.dtype] * prod(number(e, sizes) for e in p.extent)
        for p in launch.parameters
    }
    many = {g.index for g in launch.grid if number(g.size, sizes) > g.tile}
    loops = [s for s in launch.body if isinstance(s, Loop)]
    for index in dict.fromkeys(s.index for s in loops):
        moves = [
            [m for m in _moves(s.body) if _own(m, {index, *many})]
            for s in loops
            if s.index == index
        ]
        loads = [{m.tensor for m in one if isinstance(m, Load)} for one in moves]
        again = {t for n, one in enumerate(loads) for t in one if any(t in x for x in loads[:n])}
        if not any(bytes_of[t] > room for t in again):
            continue
        yield Decision("serpentine", f"{index}.outer")
        for tensor in (t for t in bytes_of if t in again):
            yield Decision("cache", tensor, tuple(zip(("hint", "last"), KEPT, strict=True)))
        for tensor in dict.fromkeys(m.tensor for one in moves for m in one if isinstance(m, Store)):
            yield Decision("cache", tensor, (("hint", KEPT[1]),))


def _moves(block: tuple[Statement, ...]) -> Iterator[Load | Store]:
    for s in block:
        if isinstance(s, Loop):
            yield from _moves(s.body)
        elif isinstance(s, Load | Store):
            yield s


def _own(move: Load | Store, indices: set[str]) -> bool:
    """Whether different tiles of these indices access different regions."""
    return indices <= {i for one in move.region for i, _ in one.terms}
