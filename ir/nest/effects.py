"""Finds decisions on loops and on data movement that change nothing in their nest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.nest import PAST_L1, Launch, Load, Loop, Store
from ir.schedule import Decision, Schedule


def idle(
    launches: tuple[Launch, ...], schedule: Schedule, machine: Machine
) -> Iterator[tuple[Decision, KernelError]]:
    """Yields each decision without effect, with an error that gives the reason.

    It examines the verbs `load`, `pipeline`, `multicast`, `keep`, `unroll_loop`, `serpentine`, `cache`,
    `swizzle`, `pad`, `epilogue`, `roles` and `pingpong`.
    """
    loads = schedule.of("load")
    # Few schedules have a `load`, so most lowerings save the walk.
    ahead = {t for launch in launches for t in _loaded_ahead(launch)} if loads else set()
    for decision in loads:
        if decision.subject not in ahead:
            why = f"no loop inside `{decision.option('at')}` walks through `{decision.subject}`"
            yield decision, _nothing(decision, why, ahead)
    unrolled = {s.index for la in launches for s in la.statements() if isinstance(s, Loop)}
    for decision in schedule.of("unroll_loop"):
        index = decision.subject.removesuffix(".outer")
        if index not in unrolled:
            why = f"`{index}` is walked by no loop"
            yield decision, _nothing(decision, why, {f"{i}.outer" for i in unrolled})
    yield from _of_caches(launches, schedule, machine)
    shared = {
        v.tensor
        for la in launches
        for v in la.values
        if v.loaded and (v.stages > 1 or machine.model.space_of(v, la) == machine.on_chip)
    }
    for decision in (*schedule.of("swizzle"), *schedule.of("pad")):
        if decision.subject not in shared:
            why = f"`{decision.subject}` is loaded into shared memory for no matmul, in no pipeline and not in bulk"
            yield decision, _nothing(decision, why, shared)
    fed = {
        s.tensor
        for la in launches
        if any(isinstance(x, Load) and x.bulk for x in la.statements())
        for s in la.statements()
        if isinstance(s, Store)
    }
    for decision in (*schedule.of("roles"), *schedule.of("pingpong")):
        if decision.subject not in fed:
            why = f"the launch that stores `{decision.subject}` copies nothing in bulk"
            yield decision, _nothing(decision, why, fed)
    stored = {s.tensor for la in launches for s in la.statements() if isinstance(s, Store)}
    for decision in schedule.of("epilogue"):
        if decision.subject not in stored:
            yield decision, _nothing(decision, f"`{decision.subject}` is not stored", stored)
    yield from _moves(launches, schedule)
    staged = {v.tensor for launch in launches for v in launch.values if v.stages > 1}
    for decision in schedule.of("pipeline"):
        if decision.number("stages") > 1 and decision.subject not in staged:
            why = f"`{decision.subject}` is moved once in a program, with nothing to prefetch"
            yield decision, _nothing(decision, why, staged)


def _of_caches(
    launches: tuple[Launch, ...], schedule: Schedule, machine: Machine
) -> Iterator[tuple[Decision, KernelError]]:
    """The decisions by `serpentine` and `cache`."""
    backwards = {
        s.index for la in launches for s in la.statements() if isinstance(s, Loop) and s.backwards
    }
    for decision in schedule.of("serpentine"):
        index = decision.subject.removesuffix(".outer")
        if index not in backwards:
            why = f"no launch has a second loop over `{index}`"
            yield decision, _nothing(decision, why, {f"{i}.outer" for i in backwards})
    hinted = {t for la in launches for t in _hinted(la, machine.rendering.hints_of)}
    again = {t for la in launches for t, n in times_loaded(la).items() if n > 1}
    for decision in schedule.of("cache"):
        if decision.subject not in hinted:
            ways = ", ".join(_WAYS[m] for m in machine.rendering.hints_of)
            why = f"`{decision.subject}` is moved by nothing that takes the hint, of {ways}"
            yield decision, _nothing(decision, why, hinted)
        elif decision.option("last") and decision.subject not in again:
            why = f"no launch has several loads of `{decision.subject}`"
            yield decision, _nothing(decision, why, again)


def _moves(
    launches: tuple[Launch, ...], schedule: Schedule
) -> Iterator[tuple[Decision, KernelError]]:
    """The decisions by `multicast` and `keep`."""
    shared_loads = {
        s.tensor for la in launches for s in la.statements() if isinstance(s, Load) and s.shared
    }
    for decision in schedule.of("multicast"):
        if decision.subject not in shared_loads:
            why = (
                f"no launch whose grid ends with `{decision.option('over')}` loads a tile of "
                f"`{decision.subject}` that is the same along it"
            )
            yield decision, _nothing(decision, why, shared_loads)
    slotted = {v.tensor for la in launches for v in la.values if v.slots is not None}
    for decision in schedule.of("keep"):
        if decision.subject not in slotted:
            why = f"no loop over `{decision.option('over')}` loads or computes `{decision.subject}`"
            yield decision, _nothing(decision, why, slotted)


def times_loaded(launch: Launch) -> Counter[str]:
    """The number of load statements of each tensor in a launch."""
    return Counter(s.tensor for s in launch.statements() if isinstance(s, Load))


_WAYS = {
    "access": "loads and stores by threads",
    "copy": "copies that run ahead",
    "bulk": "bulk copies",
}


def _hinted(launch: Launch, hints_of: Collection[str]) -> Iterator[str]:
    """The tensors that a launch moves with a cache hint. Asynchronous copies bypass L1 anyway."""
    for s in launch.statements():
        if isinstance(s, Load | Store) and s.cache:
            ahead = launch.value(s.value).stages > 1
            way = "bulk" if s.bulk else "copy" if ahead else "access"
            if way in hints_of and (way == "access" or s.cache != PAST_L1):
                yield s.tensor


def _nothing(decision: Decision, why: str, others: set[str]) -> KernelError:
    return KernelError(
        f"`{decision}` would change nothing: {why}",
        place=decision.place,
        allowed=", ".join(sorted(others)) or "none",
        hint=f"drop {decision}",
    )


def _loaded_ahead(launch: Launch) -> Iterator[str]:
    """The tensors that are loaded whole along an index whose loop is further inside."""
    for s in launch.statements():
        if isinstance(s, Load) and any(one.whole and one.terms for one in s.region):
            yield s.tensor
