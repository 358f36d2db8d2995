"""Changes of stages: the depth of each buffer, where it is filled, and by which engine."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import product

from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Reduce, Spec

DEPTHS = (1, 2, 3, 4)
DEEPEST = 5  # of what is loaded in loops, where programs have threads

Change = tuple[Decision | None, Decision | None]  # old and new, None: not there


def stage(tensor: str, depth: int, at: str = "", by: str = "") -> Decision:
    """The decision that puts a tensor through a buffer in scratch."""
    where = (("at", at),) if at else ()
    engine = (("by", by),) if by else ()
    return Decision("stage", tensor, (*where, ("space", "scratch"), ("depth", depth), *engine))


def stage_changes(
    spec: Spec, schedule: Schedule, machine: Machine, reduced: Set[str]
) -> Iterator[Change]:
    """Every other depth of what is loaded, stored or accumulated: what can be in flight more
    than once. reduced: indices that are reduced or scanned over."""
    if not machine.model.buffers_results:
        yield from _pipelines(spec, schedule, machine, reduced)
        return
    ends = {d.subject for d in schedule.of("kernel")} | {t.name for t in spec.outputs}
    tensors = [t.name for t in spec.inputs]
    tensors += [e.target for e in spec.equations if e.target in ends or isinstance(e.value, Reduce)]
    looped = any(_placed(schedule, d.subject) == "loop" for d in schedule.of("tile"))
    inputs = {t.name for t in spec.inputs}
    for name in tensors:
        old = schedule.find("stage", name)
        places = ["", "grid"] if looped and name in inputs else [""]
        for at, depth in product(places, DEPTHS):
            new = stage(name, depth, at)
            if new != old and (old or depth > 1 or at):
                yield old, new


def _pipelines(
    spec: Spec, schedule: Schedule, machine: Machine, reduced: Set[str]
) -> Iterator[Change]:
    """Depths of what is loaded in loops, and which engine moves that
    or what is stored."""
    ends = {d.subject for d in schedule.of("kernel")}
    loaded = [t.name for t in spec.inputs]
    loaded += [e.target for e in spec.equations if e.target in ends]
    tiles = [d.subject for d in schedule.of("tile")]
    looped = any(i in reduced or _placed(schedule, i) == "loop" for i in tiles)
    depths = range(1, DEEPEST + 1) if looped else (1,)
    stored = [t.name for t in spec.outputs]
    for name, among in (*((t, depths) for t in loaded), *((t, (1,)) for t in stored)):
        old = schedule.find("stage", name)
        for depth, by in product(among, ("", *machine.engines)):
            new = stage(name, depth, by=by)
            if new != old and (old or depth > 1 or by):
                yield old, new


def _placed(schedule: Schedule, index: str) -> str:
    """The level that the loop over an index's tiles is placed at."""
    place = schedule.find("place", f"{index}.outer")
    return str(place.option("level")) if place else "loop"
