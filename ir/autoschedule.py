"""The autoschedule: a good first schedule for any spec on any machine, and a plain one.

It states what is nearly always right (one launch where that is legal, contractions on the
matrix unit, loads double-buffered) and tries a small set of tile sizes against the estimate
of `cost`. The search starts from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations, product

from ir.contraction import contraction
from ir.cuts import segments
from ir.edits import stage
from ir.errors import KernelError
from ir.estimate import estimate
from ir.formulation import depends, formulate
from ir.lower import lower
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Bucketize, Equation, Index, Reduce, Scan, Spec
from ir.verbs import canonical
from ir.verify import facts as facts_of

GRID_TILES = (1, 4, 16, 64)
LOOP_TILES = (0, 32, 128)  # 0: the whole index
MOST_TRIED = 400


def autoschedule(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """The best of a small set of schedules by the estimate; raises KernelError where the spec
    cannot be lowered at all."""
    base = _base(spec, machine)
    extras = ((), _streamed(spec), _deferred(spec))
    best, least, fault = None, float("inf"), None
    for tiles in _limited(_tilings(spec, base, sizes)):
        looped = {d.subject for d in tiles if d.verb == "tile"}
        for extra in extras:
            if extra and not looped & _reduced(spec, extra):
                continue
            schedule = canonical(Schedule(spec.name, (*base, *tiles, *extra)))
            try:
                nest = lower(spec, schedule, machine, sizes)
            except KernelError as error:
                fault = fault or error
                continue
            time = estimate(nest, machine, sizes)
            if time < least:
                best, least = schedule, time
    if best is None:
        raise fault or KernelError(f"`{spec.name}` has no schedule on `{machine.name}`")
    return best


def plain(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Schedule:
    """What one would write first: a launch per equation, one row a tile, nothing staged ahead.

    A row that does not fit is walked in a loop of tiles, along what is folded first.
    """
    ends = tuple(Decision("kernel", e.target) for e in spec.equations[:-1])
    facts = facts_of(spec)
    folded = {i for e in spec.equations for i in _folded(e.value)}
    rows = {i for e in spec.equations for i in (e.indices[:-1] or e.indices) if i not in folded}
    fault = None
    for kept, summed in product((0, 128, 32, 8, 1), (0, 128, 32, 8, 1)):
        tiles: list[Decision] = []
        for name, span in facts.ranges.items():
            size = summed if name in folded else kept
            if name in rows:
                tiles += _tiled(name, 1, "grid")
            elif span.jagged or size:
                tiles += _tiled(name, size or 32, "loop")
        schedule = canonical(Schedule(spec.name, (*ends, *tiles)))
        try:
            lower(spec, schedule, machine, sizes)
        except KernelError as error:
            fault = error
            continue
        return schedule
    raise fault


def _base(spec: Spec, machine: Machine) -> tuple[Decision, ...]:
    """The decisions that do not depend on tile sizes."""
    made = list(_ends(spec))
    for e in spec.equations:
        found = contraction(e)
        if found is None or "matrix" not in machine.units:
            continue
        made.append(Decision("compute", e.target, (("unit", "matrix"),)))
        narrow = sorted({t.dtype for t in spec.inputs} & {"f16", "bf16"})
        if narrow and machine.has_matrix(narrow[0]):
            made.append(Decision("precision", e.target, (("dtype", narrow[0]),)))
    made += [stage(t.name, 2) for t in spec.inputs]
    made += [stage(t.name, 2) for t in spec.outputs]
    return tuple(made)


def _ends(spec: Spec) -> Iterator[Decision]:
    """Launches end after what is read at other indices than it is computed at."""
    made = {e.target: e for e in spec.equations}
    ended = set()
    for e in spec.equations:
        for read in e.reads():
            source = made.get(read.tensor)
            if source is None or source.target in ended:
                continue
            plain_read = tuple(p.name for p in read.at if isinstance(p, Index))
            if plain_read != source.indices or len(plain_read) != len(read.at):
                ended.add(source.target)
        for node in e.value.walk():
            if isinstance(node, Bucketize) and node.borders in made:
                ended.add(node.borders)
    for e in spec.equations[:-1]:
        if e.target in ended:
            yield Decision("kernel", e.target)


def _tilings(
    spec: Spec, base: tuple[Decision, ...], sizes: Mapping[str, int]
) -> Iterator[tuple[Decision, ...]]:
    """Choices of tile sizes: stored indices on the grid, folded ones whole or in a loop."""
    bound = bind(spec, sizes)
    facts = facts_of(spec)
    parts = segments(spec, Schedule(spec.name, base))
    folded = {i for s in parts for i in s.folded}
    scalar = {n.name for r in facts.ranges.values() if r.jagged
              for e in (r.low, r.high) for n in e.walk() if isinstance(n, Index)}
    stored = {i for s in parts for e in s.equations if e.target in s.stored for i in e.indices}
    options = []
    for name, span in facts.ranges.items():
        extent = 0 if span.jagged else number(span.high, bound)
        if span.jagged:
            options.append([_tiled(name, 32, "loop"), _tiled(name, 128, "loop")])
        elif name in scalar:
            options.append([_tiled(name, 1, "grid")])
        elif name in stored and name not in folded:
            options.append([
                *([()] if extent <= 4096 else []),
                *(_tiled(name, t, "grid") for t in GRID_TILES if t <= max(1, extent // 2)),
            ])
        else:
            options.append([
                _tiled(name, t, "loop") if t else () for t in LOOP_TILES if t < extent
            ])
    for choice in product(*options):
        yield tuple(d for part in choice for d in part)


def _limited(choices: Iterator[tuple[Decision, ...]]) -> Iterator[tuple[Decision, ...]]:
    """All choices where there are few, else an even sample of them."""
    listed = list(choices)
    step = max(1, -(-len(listed) // MOST_TRIED))
    offset = 0
    for at in range(0, len(listed), step):
        yield listed[(at + offset) % len(listed)]
        offset = (offset + 7) % step if step > 1 else 0


def _tiled(index: str, size: int, level: str) -> tuple[Decision, Decision]:
    return (
        Decision("tile", index, (("size", size),)),
        Decision("place", f"{index}.outer", (("level", level),)),
    )


def _streamed(spec: Spec) -> tuple[Decision, ...]:
    """The sums after a maximum over the same index run along with it."""
    for top in spec.equations:
        sums = [e for e in spec.equations
                if _reduces(e, "sum") and set(e.reduced) == set(top.reduced)]
        if _reduces(top, "max") and sums:
            stream = Decision("stream", top.target, (("into", sums[-1].target),))
            return (stream, *(_fused(s.target, sums[-1].target) for s in sums[:-1]))
    return ()


def _deferred(spec: Spec) -> tuple[Decision, ...]:
    """Factors leave the sums that they can leave; sums that are then independent share a loop."""
    made: list[Decision] = []
    for factor, reader in permutations((e.target for e in spec.equations), 2):
        trial = [*made, Decision("defer", factor, (("into", reader),))]
        if all(d.subject != factor for d in made) and _legal(spec, trial):
            made = trial
    if not made:
        return ()
    formed = formulate(spec, Schedule(spec.name, tuple(made)))
    sums = [e for e in formed.equations if _reduces(e, "sum")]
    for one, other in combinations(sums, 2):
        apart = not depends(formed, other.target, one.target)
        if apart and set(one.reduced) == set(other.reduced):
            made.append(_fused(one.target, other.target))
    return tuple(made)


def _fused(one: str, into: str) -> Decision:
    return Decision("fuse", one, (("into", into),))


def _reduces(equation: Equation, fold: str) -> bool:
    return isinstance(equation.value, Reduce) and equation.value.fold == fold


def _reduced(spec: Spec, decisions: tuple[Decision, ...]) -> set[str]:
    """The indices that the reductions named in fuse and stream decisions fold."""
    into = {str(d.option("into")) for d in decisions if d.verb in ("fuse", "stream")}
    return {i for e in spec.equations if e.target in into for i in e.reduced}


def _legal(spec: Spec, decisions: list[Decision]) -> bool:
    try:
        formulate(spec, Schedule(spec.name, tuple(decisions)))
    except KernelError:
        return False
    return True


def _folded(value: object) -> tuple[str, ...]:
    if isinstance(value, Reduce):
        return value.over
    return (value.along,) if isinstance(value, Scan) else ()
