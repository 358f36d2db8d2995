"""Launches and tilings: where a schedule ends a launch, and how a launch tiles each index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.errors import KernelError
from ir.memo import Keeping, by_identity, kept
from ir.recurrence import Recurrence, carried, lagging, ordered, recurrences
from ir.schedule import Decision, Schedule
from ir.spec import Bucketize, Equation, Facts, Index, Range, Read, Reduce, Scan, Spec
from ir.variant.atomic import scattered, start, updated
from ir.variant.derived import counts_parts, stands_for
from ir.variant.derived import ends as made_ends
from ir.variant.expansion import mirrored

GRID, LOOP, WHOLE = "grid", "loop", "whole"
STEP = "step"  # level of a recurrence's index: each launch computes one value of it
ENDING = ("kernel", "carry", "mirror", "pack", "split_k")  # verbs that decide where launches end


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a launch iterates over an index."""

    index: str
    level: str  # GRID, LOOP, STEP or WHOLE
    tile: int  # elements of a tile; 0 if the index is not tiled
    range: Range
    decided: str = ""  # the index whose `tile` decision gives the tile; empty if none does


@dataclass(frozen=True, slots=True)
class Segment(Keeping):
    """The equations of one launch."""

    name: str
    equations: tuple[Equation, ...]
    stored: tuple[str, ...]  # tensors that it writes to global memory: outputs and workspace
    recurrence: Recurrence | None = None  # the recurrence of which this launch computes one step
    carried: tuple[Recurrence, ...] = ()  # recurrences whose steps it iterates over in a loop

    @property
    @kept
    def reduced(self) -> frozenset[str]:
        """The indices that an equation here reduces or scans. They cannot be spread over the
        grid."""
        found: set[str] = set()
        for e in self.equations:
            found.update(e.reduced)
            if isinstance(e.value, Scan):
                found.add(e.value.along)
        return frozenset(found)

    @kept
    def by_target(self) -> dict[str, Equation]:
        """The equations by target."""
        return {e.target: e for e in self.equations}

    @kept
    def sources(self) -> frozenset[str]:
        """The tensors that an equation here reads."""
        return frozenset(name for e in self.equations for name in e.sources())

    @kept
    def tensors(self) -> frozenset[str]:
        """The tensors that an equation here reads or defines."""
        return self.sources() | frozenset(self.by_target()) | frozenset(self.stored)

    def loads(self, read: Read) -> bool:
        """Whether a read is of global memory. Reads of another step's tensor are: that tensor is
        stored."""
        computed, step = self.by_target(), self.recurrence
        if read.tensor not in computed:
            return True
        return step is not None and lagging(read, step.index, computed)

    @kept
    def borders(self) -> frozenset[str]:
        """The tensors that an equation here searches in."""
        nodes = (n for e in self.equations for n in e.value.walk())
        return frozenset(n.borders for n in nodes if isinstance(n, Bucketize))


def segments(spec: Spec, schedule: Schedule) -> tuple[Segment, ...]:
    """The launches of a schedule.

    A launch ends after each `kernel(t)`, after a tensor that gets a launch of its own (packed
    copies, partial sums of split-K), before and after a recurrence, and after the last equation.
    The target of an atomic addition is initialised by an earlier launch.
    """
    return _segments(spec, schedule.only(ENDING))


@by_identity
def _segments(spec: Spec, schedule: Schedule) -> tuple[Segment, ...]:
    """The same, for a schedule without other verbs, so that the memo hits more often."""
    decided = {d.subject: d for d in schedule.of("kernel")}
    targets = [e.target for e in spec.equations]
    together = {d.subject for d in schedule.of("mirror")}
    from_ends = {back for back, scan in mirrored(spec).items() if scan not in together}
    ends = {*decided, *made_ends(schedule), *from_ends, *scattered(spec)}
    for name, decision in decided.items():
        if name not in targets:
            raise KernelError(
                f"`kernel({name})` ends a launch after an unknown tensor",
                place=decision.place,
                allowed=", ".join(targets),
            )
    groups: list[list[Equation]] = [[]]
    walked = carried(spec, schedule)
    steps = {t: r for r in recurrences(spec) if r not in walked for t in r.targets}
    for e in ordered(spec):
        if groups[-1] and steps.get(groups[-1][-1].target) != steps.get(e.target):
            groups.append([])
        groups[-1].append(e)
        if e.target in ends:
            groups.append([])
    groups = [g for g in groups if g]
    _require_whole(groups, walked)
    behind = _behind(spec, tuple(steps.values()))
    outputs = {t.name for t in spec.outputs}
    made: list[Segment] = []
    for number, group in enumerate(groups):
        later = {s for g in groups[number + 1 :] for e in g for s in e.sources()}
        left = outputs | later | behind
        stored = tuple(e.target for e in group if e.target in left)
        for e in (e for e in group if e.accumulate):
            made.append(Segment(f"{spec.name}_{len(made)}", (start(e),), (e.target,)))
        if stored:
            step = steps.get(group[0].target)
            here = {e.target for e in group}
            inside = tuple(r for r in walked if r.targets[0] in here)
            _require_one_way(group, inside, walked)
            made.append(Segment(f"{spec.name}_{len(made)}", tuple(group), stored, step, inside))
    return tuple(made)


def _require_whole(groups: list[list[Equation]], walked: Mapping[Recurrence, Decision]) -> None:
    """Raises KernelError if a launch would end within the steps that one thread block iterates
    over."""
    for r, decision in walked.items():
        if not any(set(r.targets) <= {e.target for e in group} for group in groups):
            raise KernelError(
                f"a launch ends between the equations of the recurrence of `{decision.subject}`, "
                "so its steps are not gone through in one",
                place=decision.place,
                hint=f"drop {decision}, or the `kernel` decisions on {', '.join(r.targets)}",
            )


def _require_one_way(
    group: list[Equation], inside: tuple[Recurrence, ...], walked: Mapping[Recurrence, Decision]
) -> None:
    """Raises KernelError if one loop over steps would have to run in both directions."""
    for r in (r for r in inside if r.backwards):
        forwards = [o.targets[-1] for o in inside if o.index == r.index and not o.backwards]
        forwards += [
            e.target for e in group if isinstance(e.value, Scan) and e.value.along == r.index
        ]
        if forwards:
            raise KernelError(
                f"the steps of `{walked[r].subject}` are gone through from the last, those of "
                f"`{forwards[0]}` in the same launch from the first",
                place=walked[r].place,
                hint="end a launch between them by `kernel`",
            )


def _behind(spec: Spec, stepped: tuple[Recurrence, ...]) -> set[str]:
    """The tensors of recurrences with one launch per step that are read at another step."""
    found = set()
    for r in stepped:
        equations = {t: spec.equation(t) for t in r.targets}
        reads = (read for e in equations.values() for read in e.reads())
        found |= {read.tensor for read in reads if lagging(read, r.index, equations)}
    return found


def tilings(
    segment: Segment, facts: Facts, schedule: Schedule, spread: bool = False
) -> Mapping[str, Tiling]:
    """The tiling of every index of a launch, in the order of the schedule's `place` decisions.

    spread: whether a launch without reductions, such as one that makes a packed copy, puts all its
        tiles on the grid, also along indices that are loops in the launches that reduce them.

    The index of a recurrence gets one step per launch, whatever the schedule decides on it for
    other launches. An index that is on the grid elsewhere but reduced here becomes a loop. The
    index over the parts of a split is on the grid in the launch that makes the parts, one part per
    tile.
    """
    used = _used(segment)
    apart = _apart(segment)
    order = [d.subject.removesuffix(".outer") for d in schedule.of("place")]
    parts = [i for i in used if counts_parts(schedule, i)]
    order = [*(i for i in parts if i not in order), *order]
    followed = {i: i if _decided(schedule, i) else stands_for(schedule, i) for i in used}
    rank = {i: order.index(f) if f in order else len(order) for i, f in followed.items()}
    ranked = sorted(used, key=rank.__getitem__)
    made = {}
    step = segment.recurrence.index if segment.recurrence else ""
    for index in ranked:
        if index == step:
            made[index] = Tiling(index, STEP, 1, facts.ranges[index])
            continue
        if any(r.index == index for r in segment.carried):
            made[index] = Tiling(index, LOOP, 1, facts.ranges[index])
            continue
        tile = schedule.find("tile", followed[index])
        place = schedule.find("place", f"{followed[index]}.outer")
        span = facts.ranges[index]
        if index in parts:
            if tile and index in segment.reduced:
                made[index] = Tiling(index, LOOP, tile.number("size"), span, followed[index])
            else:
                level = LOOP if index in segment.reduced else GRID
                made[index] = Tiling(index, level, 1, span)
            continue
        if tile is None:
            if span.jagged:
                raise KernelError(
                    f"`{index}` runs over a jagged range and has no tile",
                    hint=f"tile({index}, size=32)",
                )
            made[index] = Tiling(index, WHOLE, 0, span)
            continue
        on_grid = place is not None and place.option("level") == GRID
        free = index not in segment.reduced and index in apart and not span.jagged
        wide = on_grid or spread and not segment.reduced
        level = GRID if wide and free else LOOP
        made[index] = Tiling(index, level, tile.number("size"), span, followed[index])
    return made


def _decided(schedule: Schedule, index: str) -> bool:
    return schedule.find("tile", index) is not None


@kept
def _used(segment: Segment) -> tuple[str, ...]:
    """The indices of a launch, in order of first use."""
    found: dict[str, None] = {}
    for e in segment.equations:
        for part in (*e.at, e.value):
            for node in part.walk():
                if isinstance(node, Index):
                    found[node.name] = None
                elif isinstance(node, Reduce):
                    found.update(dict.fromkeys(node.over))
                    for span in node.ranges:
                        found.update(_bounds(span))
    return tuple(found)


def _bounds(span: Range) -> dict[str, None]:
    nodes = (n for e in (span.low, span.high) for n in e.walk())
    return {n.name: None for n in nodes if isinstance(n, Index)}


@kept
def _apart(segment: Segment) -> frozenset[str]:
    """The indices that address the tensors that a launch stores."""
    return frozenset(i for t in segment.stored for i in updated(segment.by_target()[t]))
