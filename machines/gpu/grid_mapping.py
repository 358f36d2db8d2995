"""Grid mapping: threads, rasterization order and persistence of the thread blocks of a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ir.errors import KernelError
from ir.lower.launches import GRID, Segment, Tiling
from ir.lower.verb_table import OF_LAUNCH
from ir.nest.nest import Cluster, Meeting, Rasterization, Roles, StreamK
from ir.schedule import Decision, Schedule


def launch_fields(
    schedule: Schedule, segment: Segment, tilings: Mapping[str, Tiling]
) -> Mapping[str, Any]:
    """The grid mapping of a launch, as fields of `Launch` in `ir/nest/nest.py`. Raises KernelError
    where two decisions on it conflict."""
    threads = _one(schedule, "threads", segment)
    persistent = _one(schedule, "persistent", segment)
    registers = _one(schedule, "registers", segment)
    grid = [c.index for c in tilings.values() if c.level == GRID]
    if persistent and not grid:
        raise KernelError(
            f"`{segment.name}` has no grid, so its one program cannot walk through tiles",
            place=persistent.place,
            hint="place a loop on the grid",
        )
    return {
        "threads": threads.number("count") if threads else 0,
        "rasterization": _rasterization(schedule, segment, grid),
        "resident": persistent.number("programs") if persistent else 0,
        "specialized": _one(schedule, "specialize", segment) is not None,
        "registers": registers.number("limit") if registers else 0,
        "cluster": _cluster(schedule, segment, grid),
        "roles": _roles(schedule, segment),
        "pingpong": _pingpong(schedule, segment),
        "stream_k": _stream_k(schedule, segment),
        "meeting": Meeting() if _one(schedule, "cooperative", segment) else None,
    }


def require_met(
    schedule: Schedule, parts: Sequence[Segment], cut: Sequence[Mapping[str, Tiling]]
) -> None:
    """Raises KernelError at a decision on a launch that applies to no launch."""
    stored = tuple(dict.fromkeys(t for s in parts for t in s.stored))
    for decision in (d for verb in OF_LAUNCH for d in schedule.of(verb)):
        if decision.subject not in stored:
            raise KernelError(
                f"no launch stores `{decision.subject}`, so `{decision.verb}` names none",
                place=decision.place,
                allowed=", ".join(stored),
                hint="name a launch by a tensor that it stores",
            )
    grids = [tuple(c.index for c in one.values() if c.level == GRID) for one in cut]
    for decision in (*schedule.of("rasterize"), *schedule.of("cluster")):
        pair = {decision.subject, str(decision.option("over", decision.subject))}
        if not any(pair <= set(grid) for grid in grids):
            raise KernelError(
                f"no launch has tiles of {'both ' if len(pair) > 1 else ''}"
                f"{' and '.join(f'`{i}`' for i in sorted(pair))} on its grid",
                place=decision.place,
                allowed=", ".join(dict.fromkeys(i for grid in grids for i in grid)) or "none",
                hint=f"place {'both loops' if len(pair) > 1 else 'its loop'} on the grid",
            )


def _one(schedule: Schedule, verb: str, segment: Segment) -> Decision | None:
    """The decision of a verb on a launch, named by any tensor that the launch stores."""
    found = [d for d in schedule.of(verb) if d.subject in segment.stored]
    if len(found) > 1:
        raise KernelError(
            f"`{verb}` is decided twice for `{segment.name}`, which stores "
            f"{' and '.join(f'`{d.subject}`' for d in found)}",
            place=found[1].place,
            hint="decide it for one of them",
        )
    return found[0] if found else None


def _cluster(schedule: Schedule, segment: Segment, grid: list[str]) -> Cluster | None:
    found = [d for d in schedule.of("cluster") if d.subject in grid]
    if len(found) > 1:
        raise KernelError(
            f"the blocks of `{segment.name}` form clusters along two indices",
            place=found[1].place,
            allowed="a cluster along one index of a launch's grid",
            hint=f"drop {found[1]}",
        )
    return Cluster(found[0].subject, found[0].number("size")) if found else None


def _roles(schedule: Schedule, segment: Segment) -> Roles | None:
    one = _one(schedule, "roles", segment)
    return Roles(one.number("producers"), one.number("registers", 0)) if one else None


def _pingpong(schedule: Schedule, segment: Segment) -> bool:
    one = _one(schedule, "pingpong", segment)
    if one is None:
        return False
    if not _one(schedule, "persistent", segment):
        raise KernelError(
            f"each program of `{segment.name}` has one tile, so there are no two to take turns with",
            place=one.place,
            allowed="persistent programs",
            hint=f"persistent({one.subject}, programs=1)",
        )
    if shares := _one(schedule, "stream_k", segment):
        raise KernelError(
            f"programs of `{segment.name}` have parts of tiles, which no two groups take turns with",
            place=one.place,
            allowed="one of `pingpong` and `stream_k`",
            hint=f"drop {shares}",
        )
    return True


def _stream_k(schedule: Schedule, segment: Segment) -> StreamK | None:
    one = _one(schedule, "stream_k", segment)
    return StreamK(str(one.option("over"))) if one else None


def _rasterization(schedule: Schedule, segment: Segment, grid: list[str]) -> Rasterization | None:
    found = [d for d in schedule.of("rasterize") if {d.subject, str(d.option("over"))} <= set(grid)]
    if len(found) > 1:
        raise KernelError(
            f"the tiles of `{segment.name}` are grouped twice",
            place=found[1].place,
            hint="group them along one index",
        )
    if not found:
        return None
    (one,) = found
    cluster = schedule.find("cluster", one.subject)
    if cluster and one.number("size") % cluster.number("size"):
        raise KernelError(
            f"groups of {one.option('size')} tiles of `{one.subject}` are not whole clusters of "
            f"{cluster.option('size')}",
            place=one.place,
            allowed=f"multiples of {cluster.option('size')}",
            hint=f"drop {cluster}",
        )
    return Rasterization(one.subject, str(one.option("over")), one.number("size"))
