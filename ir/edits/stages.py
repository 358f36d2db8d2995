"""Changes of how tensors move: the loop that loads them, pipeline stages, the kind of copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from ir.machine import DIRECT, WINDOW, Machine
from ir.schedule import Decision, Schedule
from ir.spec import Index, Read, Reduce, Spec

STAGES = (2, 3, 4, 6, 8)
MOST_STAGES = 5  # for tensors loaded in loops, on machines whose thread blocks have threads

# Old and new decision, None if there is none; and the tensors whose decision of this verb changes
# as well.
Change = tuple[Decision | None, Decision | None, tuple[str, ...]]


def load(tensor: str, at: str) -> Decision:
    """The decision to load a tensor at a loop."""
    return Decision("load", tensor, (("at", at),))


def pipeline(tensor: str, stages: int) -> Decision:
    """The decision on the number of buffers for a tensor's tiles."""
    return Decision("pipeline", tensor, (("stages", stages),))


def copy(tensor: str, by: str) -> Decision:
    """The decision to copy a tensor by an engine."""
    return Decision("copy", tensor, (("by", by),))


def stage_changes(
    spec: Spec, schedule: Schedule, machine: Machine, reduced: Set[str]
) -> Iterator[Change]:
    """Every single change of `load`, `pipeline` and `copy` that the machine renders, in a fixed
    order.

    reduced: indices that are reduced or scanned.
    """
    inputs = [t.name for t in spec.inputs]
    ends = {d.subject for d in schedule.of("kernel")}
    tiles = [d.subject for d in schedule.of("tile")]
    looped = {i for i in tiles if _placed(schedule, i) == "loop"}
    if machine.model.buffers_results:
        ends |= {t.name for t in spec.outputs}
        made = [
            e
            for e in spec.equations
            if e.target in ends or isinstance(e.value, Reduce) or looped & set(e.indices)
        ]
        kept = {d.subject for d in schedule.of("keep")}
        buffered = [n for n in (*inputs, *(e.target for e in made)) if n not in kept]
        counts: Iterable[int] = STAGES
        for name in inputs if looped else ():
            yield from _among(schedule, "load", name, (load(name, "grid"),))
    else:
        loops = looped | set(tiles) & reduced
        loaded = [*inputs, *_left(spec, ends)]
        buffered = loaded if loops else []
        counts = range(min(STAGES), MOST_STAGES + 1)
        for name in dict.fromkeys((*loaded, *(t.name for t in spec.outputs))):
            found = schedule.find("copy", name)
            if found is not None and found.option("by") == DIRECT:
                continue  # dropped together with the others of its loop; see `direct_loads`
            engines = [e for e in machine.rendered_engines if e != DIRECT]
            if not _at_several_places(spec, name):
                engines = [e for e in engines if e != WINDOW]
            made_by = [copy(name, by) for by in engines if machine.renders("copy")]
            yield from _among(schedule, "copy", name, made_by)
    if not machine.renders("pipeline"):
        return
    together = _together(spec, reduced & set(tiles)) if machine.stages_of_loops else {}
    for name in buffered:
        values = [pipeline(name, n) for n in counts]
        alike = together.get(name, ())
        yield from _among(schedule, "pipeline", name, values, alike)


def _at_several_places(spec: Spec, tensor: str) -> bool:
    """Whether an equation reads a tensor more than once, as the terms of unrolled filter taps
    do."""
    return any(sum(read.tensor == tensor for read in e.reads()) > 1 for e in spec.equations)


def direct_loads(
    spec: Spec, schedule: Schedule, machine: Machine, reduced: Set[str]
) -> Iterator[tuple[str, ...]]:
    """The sets of tensors that one loop loads for a matmul and that can be copied directly to
    shared memory.

    Each tensor must have two stages and be contiguous along the loop. All of a set are copied
    directly, or none.

    reduced: as in `stage_changes`.
    """
    if DIRECT not in machine.rendered_engines or not machine.renders("copy"):
        return
    ends = {t.name for t in spec.inputs} | {d.subject for d in schedule.of("kernel")}
    looped = reduced & {d.subject for d in schedule.of("tile")}
    matmuls = {d.subject for d in schedule.of("compute") if d.option("unit") == "matrix"}
    for e in spec.equations:
        reads = [n for n in e.value.walk() if isinstance(n, Read)] if e.target in matmuls else []
        loads = [n for n in reads if _along(n) & looped & set(e.reduced)]
        names = tuple(dict.fromkeys(n.tensor for n in loads))
        stages = {schedule.find("pipeline", n) for n in names} == {pipeline(n, 2) for n in names}
        last = [n.at[-1] for n in loads]
        contiguous = all(isinstance(at, Index) and at.name in looped for at in last)
        if names and stages and contiguous and ends.issuperset(names):
            yield names


def _left(spec: Spec, ends: Set[str]) -> Iterator[str]:
    """The tensors that end launches, and other results of a launch that later launches read."""
    last = {e.target: n for n, e in enumerate(spec.equations)}
    at = sorted(last[name] for name in ends if name in last)
    readers = {
        read.tensor: n for n, e in enumerate(spec.equations) for read in e.reads()
    }  # by tensor, the last equation that reads it
    for n, e in enumerate(spec.equations):
        launch = next((end for end in at if end >= n), None)
        if launch is not None and readers.get(e.target, -1) > launch:
            yield e.target


def _along(read: Read) -> set[str]:
    """The indices that occur in a read."""
    return {n.name for at in read.at for n in at.walk() if isinstance(n, Index)}


def _among(
    schedule: Schedule,
    verb: str,
    name: str,
    values: Iterable[Decision],
    alike: tuple[str, ...] = (),
) -> Iterator[Change]:
    """All other values of a decision, and its removal."""
    old = schedule.find(verb, name)
    for new in values:
        if new != old:
            yield old, new, alike
    if old is not None:
        yield old, None, alike


def _together(spec: Spec, looped: Set[str]) -> dict[str, tuple[str, ...]]:
    """By tensor: the other tensors that one loop probably loads with it.

    They are read along the same loops of reductions, of the reading equation's own where it has
    some.
    """
    along: dict[str, Set[str]] = {}
    for e in spec.equations:
        for read in (n for n in e.value.walk() if isinstance(n, Read)):
            inside = _along(read) & looped
            walked = inside & set(e.reduced) or inside
            along[read.tensor] = along.get(read.tensor, frozenset()) | walked
    return {
        name: tuple(other for other in along if other != name and along[other] == walked)
        for name, walked in along.items()
    }


def _placed(schedule: Schedule, index: str) -> str:
    """The level at which the loop over an index's tiles is placed."""
    place = schedule.find("place", f"{index}.outer")
    return str(place.option("level")) if place else "loop"
