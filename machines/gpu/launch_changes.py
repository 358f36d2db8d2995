"""Edits of the grid mapping of each launch: order of tiles, threads, persistence, roles, cache hints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import prod

from ir.lower import stream_k
from ir.lower.launches import segments
from ir.lower.verbs import thread_counts
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from machines.gpu import clusters
from machines.gpu.limits import cache_hints, register_limits

GROUP_SIZES = (2, 4, 8, 16)
RESIDENT = (1, 2, 3, 4)
# Hints for tensors that are loaded again, and for the last load
KEPT = ("evict_last", "evict_first")

Options = tuple[tuple[str, int | str], ...]
ROLES: tuple[Options, ...] = (
    (("producers", 32),),
    (("producers", 128), ("registers", 24)),
)
Change = tuple[Decision | None, Decision | None]  # old and new; None: absent


def launch_changes(spec: Spec, schedule: Schedule, machine: Machine) -> Iterator[Change]:
    """Yields every single change of the machine's verbs on launches, and of `cache`, in a fixed order."""
    verbs = {v for v in machine.model.verbs if machine.renders(v)}
    if "rasterize" in verbs:
        yield from _swizzles(schedule)
    if "cluster" in verbs:
        yield from clusters.changes(spec, schedule, machine)
    for tensor in _named(spec, schedule, "threads") if "threads" in verbs else ():
        yield from _values(schedule, "threads", tensor, "count", thread_counts(machine))
    for tensor in _named(spec, schedule, "persistent") if "persistent" in verbs else ():
        yield from _values(schedule, "persistent", tensor, "programs", RESIDENT)
    for tensor in _named(spec, schedule, "stream_k") if "stream_k" in verbs else ():
        over = _streamed(spec, schedule, machine, tensor)
        yield from _options(schedule, "stream_k", tensor, [(("over", index),) for index in over])
    for tensor in _named(spec, schedule, "cooperative") if "cooperative" in verbs else ():
        if any(tensor in p.stored and p.recurrence for p in segments(spec, schedule)):
            yield from _toggled(schedule, "cooperative", tensor)
    for tensor in _named(spec, schedule, "registers") if "registers" in verbs else ():
        threads = _threads(spec, schedule, tensor)
        bulk = any(d.option("by") == "bulk" for d in schedule.of("copy"))
        limits = register_limits(machine, threads, _held(spec, schedule, tensor), bulk)
        yield from _values(schedule, "registers", tensor, "limit", limits)
    roles = "roles" in verbs and "bulk" in machine.engines and schedule.of("copy")
    for tensor in _named(spec, schedule, "roles") if roles else ():
        yield from _options(schedule, "roles", tensor, ROLES)
    for tensor in _named(spec, schedule, "pingpong") if "pingpong" in verbs else ():
        if _alternates(spec, schedule, machine, tensor):
            yield from _toggled(schedule, "pingpong", tensor)
    if "cache" in verbs:
        yield from _hints(spec, schedule, cache_hints(machine))
    for tensor in _named(spec, schedule, "specialize") if "specialize" in verbs else ():
        yield from _toggled(schedule, "specialize", tensor)


def _hints(spec: Spec, schedule: Schedule, known: Sequence[str]) -> Iterator[Change]:
    """Yields cache hints of each tensor; for an input that several loops may load, also another
    hint for the last loop."""
    grid = {d.subject for d in schedule.of("place") if d.option("level") == "grid"}
    looped = any(f"{d.subject}.outer" not in grid for d in schedule.of("tile"))
    inputs = {t.name for t in spec.inputs}
    for tensor in dict.fromkeys(t.name for t in (*spec.inputs, *spec.outputs)):
        told: list[Options] = [(("hint", hint),) for hint in known]
        if looped and tensor in inputs and set(KEPT) <= set(known):
            told += [tuple(zip(("hint", "last"), KEPT, strict=True)), (("last", KEPT[1]),)]
        yield from _options(schedule, "cache", tensor, told)


def _swizzles(schedule: Schedule) -> Iterator[Change]:
    """Yields every single change of `rasterize`: tiles of one grid index in groups along another (L2 swizzle)."""
    loops = [d.subject for d in schedule.of("place") if d.option("level") == "grid"]
    indices = [loop.removesuffix(".outer") for loop in loops]
    for index, over in permutations(indices, 2):
        old = schedule.find("rasterize", index)
        for size in GROUP_SIZES:
            new = Decision("rasterize", index, (("size", size), ("over", over)))
            if new != old:
                yield old, new
    for old in schedule.of("rasterize"):
        yield old, None


def _values(
    schedule: Schedule, verb: str, tensor: str, option: str, counts: tuple[int | str, ...]
) -> Iterator[Change]:
    yield from _options(schedule, verb, tensor, [((option, count),) for count in counts])


def _options(
    schedule: Schedule, verb: str, tensor: str, options: Sequence[Options]
) -> Iterator[Change]:
    old = schedule.find(verb, tensor)
    for one in options:
        new = Decision(verb, tensor, one)
        if new != old:
            yield old, new
    if old:
        yield old, None


def _toggled(schedule: Schedule, verb: str, tensor: str) -> Iterator[Change]:
    there = schedule.find(verb, tensor)
    yield (there, None) if there else (None, Decision(verb, tensor, ()))


def _alternates(spec: Spec, schedule: Schedule, machine: Machine, tensor: str) -> bool:
    """Whether two consumer groups of the launch that stores a tensor may alternate between tiles
    (ping-pong). Requires a persistent launch without stream-K, and a matmul whose operands are
    copied in bulk."""
    part = next(p for p in segments(spec, schedule) if tensor in p.stored)
    decided = {d.verb for t in part.stored for d in schedule.decisions if d.subject == t}
    bulk = any(d.option("by") == "bulk" for d in schedule.of("copy"))
    matrix = any(
        d.option("unit") == "matrix"
        for e in part.equations
        if (d := schedule.find("compute", e.target))
    )
    may = "bulk" in machine.engines and bulk and matrix
    return "pingpong" in decided or (may and "persistent" in decided and "stream_k" not in decided)


def _streamed(spec: Spec, schedule: Schedule, machine: Machine, tensor: str) -> tuple[str, ...]:
    """The indices over which the persistent blocks of a launch may share a K loop equally
    (stream-K): those of its one reduction on the matrix unit."""
    part = next(p for p in segments(spec, schedule) if tensor in p.stored)
    persistent = any(schedule.find("persistent", t) for t in part.stored)
    sums = [e for e in part.equations if e.reduced]
    if not persistent or len(sums) != 1 or stream_k.COUNTED not in machine.atomics:
        return ()
    compute = schedule.find("compute", sums[0].target)
    if compute is None or compute.option("unit") != "matrix":
        return ()
    return tuple(i for i in sums[0].reduced if schedule.find("tile", i))


def _held(spec: Spec, schedule: Schedule, tensor: str) -> int:
    """Elements of the largest accumulator of the matrix unit in the launch that stores a tensor."""
    matrix = {d.subject for d in schedule.of("compute") if d.option("unit") == "matrix"}
    sizes = {d.subject: d.number("size") for d in schedule.of("tile")}
    return max(
        (
            prod(sizes.get(i, 1) for i in e.indices)
            for part in segments(spec, schedule)
            if tensor in part.stored
            for e in part.equations
            if e.target in matrix
        ),
        default=0,
    )


def _threads(spec: Spec, schedule: Schedule, tensor: str) -> int:
    """The decided number of threads of the launch that stores a tensor; 0: undecided."""
    for part in segments(spec, schedule):
        found = (schedule.find("threads", t) for t in part.stored if tensor in part.stored)
        for decision in (d for d in found if d is not None):
            return decision.number("count")
    return 0


def _named(spec: Spec, schedule: Schedule, verb: str) -> tuple[str, ...]:
    """The tensor by which decisions of a verb name each launch: one that is already used, else the last stored."""
    names = []
    for part in segments(spec, schedule):
        decided = [t for t in part.stored if schedule.find(verb, t)]
        names.append((*decided, *reversed(part.stored))[0])
    return tuple(names)
