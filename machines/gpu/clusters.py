"""Thread block clusters: neighbouring blocks that copy shared data once and multicast it to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ir.errors import KernelError
from ir.machine import Machine
from ir.nest.bulk import depends, shared
from ir.nest.nest import Bound, Launch, Load, Loop
from ir.schedule import Decision, Schedule
from ir.spec import Index, Read, Spec


def sizes(machine: Machine) -> tuple[int, ...]:
    """The cluster sizes of a chip, in thread blocks, without 1; empty where it has no clusters."""
    most = machine.details.get("gpu", {}).get("cluster_blocks", 1)
    return tuple(1 << n for n in range(1, most.bit_length()) if 1 << n <= most)


def check_decision(decision: Decision, machine: Machine) -> None:
    """Raises KernelError where a decision asks for a cluster size that the chip does not have."""
    if decision.verb == "cluster" and decision.number("size") not in sizes(machine):
        raise KernelError(
            f"`{machine.name}` has no clusters of {decision.option('size')} thread blocks",
            place=decision.place,
            allowed=", ".join(map(str, sizes(machine)))
            or "none: `gpu.cluster_blocks` of the target says so",
            hint=f"drop {decision}",
        )


def require_decided(launches: Sequence[Launch], schedule: Schedule) -> None:
    """Raises KernelError at a cluster whose blocks share no bulk copy, or whose blocks run different loops."""
    for decision in schedule.of("cluster"):
        index = decision.subject
        own = [s for one in launches if one.cluster for s in one.statements()]
        copied = [s for s in own if isinstance(s, Load) and s.bulk]
        apart = [s.index for s in own if isinstance(s, Loop) and _moves(s, index)]
        if apart:
            why = f"the loop over `{apart[0]}` is another for each tile of `{index}`"
        elif not any(shared(s, index) for s in copied):
            names = ", ".join(dict.fromkeys(f"`{s.tensor}`" for s in copied)) or "nothing"
            why = f"of what is copied in bulk ({names}), nothing is the same for all tiles of `{index}`"
        else:
            continue
        raise KernelError(
            f"blocks that form a cluster would share no copies: {why}",
            place=decision.place,
            allowed="clusters along an index that a load copied in bulk does not have",
            hint=f"drop {decision}, or add copy(x, by=bulk) for an `x` without `{index}`",
        )


def _moves(loop: Loop, index: str) -> bool:
    return any(_moves_with(bound, index) for bound in (loop.low, loop.high))


def _moves_with(bound: Bound, index: str) -> bool:
    if bound.size is not None:
        return any(isinstance(n, Index) and n.name == index for n in bound.size.walk())
    return depends(bound.entry, index)


def changes(
    spec: Spec, schedule: Schedule, machine: Machine
) -> Iterator[tuple[Decision | None, Decision | None]]:
    """Yields every single change of the clusters along a grid index that some tensor copied in bulk does not have."""
    copied = {d.subject for d in schedule.of("copy")}
    read: dict[str, set[str]] = {}  # the indices of each
    for r in (n for e in spec.equations for n in e.value.walk() if isinstance(n, Read)):
        indices = {n.name for at in r.at for n in at.walk() if isinstance(n, Index)}
        read[r.tensor] = read.get(r.tensor, set()) | indices
    grid = [
        d.subject.removesuffix(".outer")
        for d in schedule.of("place")
        if d.option("level") == "grid"
    ]
    for index in grid:
        old = schedule.find("cluster", index)
        if any(tensor in copied and index not in own for tensor, own in read.items()):
            for size in sizes(machine):
                new = Decision("cluster", index, (("size", size),))
                if new != old:
                    yield old, new
        if old:
            yield old, None
