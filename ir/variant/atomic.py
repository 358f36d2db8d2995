"""Scatters by atomic addition: the updates are added to memory in any order."""

from __future__ import annotations

from dataclasses import replace

from ir.contraction import indices
from ir.errors import KernelError
from ir.schedule import Decision, Schedule
from ir.spec import Equation, Facts, Index, Number, Range, Reduce, Scan, Spec
from ir.verify import facts

DTYPES = ("f32", "i32", "f16")  # dtypes with an atomic addition on some machine
# Of these, the dtypes that can hold every partial sum if they hold the total.
WIDE = (
    "f32",
    "i32",
)


def decided(spec: Spec, schedule: Schedule) -> frozenset[str]:
    """The targets of the scatters that use atomic additions. Raises KernelError if a decision is
    illegal."""
    found = schedule.of("atomic")
    for decision in found:
        _require_scatter(spec, decision)
    return frozenset(d.subject for d in found)


def scattered(spec: Spec) -> tuple[str, ...]:
    """The tensors that a variant adds to in memory.

    Each is initialised by an earlier launch and ends a launch.
    """
    return tuple(e.target for e in spec.equations if e.accumulate)


def places(e: Equation) -> tuple[Index, ...]:
    """One index per dimension of a scatter's target, for the launch that initialises it.

    It is the position itself if that is an index that no other position has, else a new index
    (`y_0` for the first dimension of `y`).
    """
    found: list[Index] = []
    for dim, position in enumerate(e.at):
        others = {i for k, p in enumerate(e.at) if k != dim for i in indices(p)}
        if isinstance(position, Index) and position.name not in others:
            found.append(position)
        else:
            found.append(Index(f"{e.target}_{dim}"))
    return tuple(found)


def updated(e: Equation) -> tuple[str, ...]:
    """The indices that an equation writes along.

    For a scatter these are all indices that distinguish its updates, those of the added value
    first.
    """
    if not e.accumulate:
        return e.indices
    found: dict[str, None] = {}
    for part in (e.value, *e.at):
        found.update(dict.fromkeys(indices(part)))
    return tuple(found)


def start(e: Equation) -> Equation:
    """The equation that fills a scatter's target with zeros before its updates are added."""
    return replace(e, at=places(e), value=Number(0), accumulate=False)


def facts_with_places(spec: Spec) -> Facts:
    """The facts of a variant, with the ranges of the indices that initialise scatter targets."""
    known = facts(spec)
    made: dict[str, Range] = {}
    for e in spec.equations if scattered(spec) else ():
        for index, size in zip(places(e), known.tensors[e.target].shape, strict=True):
            if e.accumulate and index.name not in known.ranges:
                made[index.name] = Range(index.name, Number(0), size)
    return replace(known, ranges={**known.ranges, **made}) if made else known


def _require_scatter(spec: Spec, decision: Decision) -> None:
    targets = {e.target: e for e in spec.equations if e.accumulate}
    e = targets.get(decision.subject)
    if e is None:
        raise KernelError(
            f"`{decision.subject}` is not scattered into, so nothing is added to memory",
            place=decision.place,
            allowed=", ".join(targets) or "no tensor here",
            hint=f"drop {decision}",
        )
    dtype = facts(spec).tensors[e.target].dtype
    if dtype not in DTYPES:
        raise KernelError(
            f"`{e.target}` is {dtype}, which memory does not add to",
            place=decision.place,
            allowed=", ".join(DTYPES),
            hint=f"drop {decision}, or scatter into an f32 tensor and cast it afterwards",
        )
    if isinstance(e.value, Reduce | Scan):
        raise KernelError(
            f"`{e.target}` is scattered into what is reduced in the same equation",
            place=decision.place,
            hint="give the reduction an equation of its own",
        )
    _require_free(spec, e, decision)


def _require_free(spec: Spec, e: Equation, decision: Decision) -> None:
    """Raises KernelError if an index that initialises a target has the name of another index or
    tensor."""
    known = facts(spec)
    for own, position in zip(places(e), e.at, strict=True):
        if own is not position and (own.name in known.ranges or own.name in known.tensors):
            raise KernelError(
                f"`{decision}` would make a second `{own.name}`",
                place=decision.place,
                hint="rename that one in the spec",
            )
