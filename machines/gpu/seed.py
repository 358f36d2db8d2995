"""The seed schedule of a GPU: power-of-two tiles that fit registers.

The role of an index determines its candidate tile sizes: M and N fill a matrix unit, rows stay whole where they fit,
batch indices and filter taps go one at a time. The estimate chooses the combination and the threads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, inf, log2, prod

from ir.autoschedule.climb import climb
from ir.autoschedule.seeds import reduced, tiled
from ir.edits.stages import copy
from ir.errors import KernelError
from ir.lower.lower import fits, lower
from ir.lower.verb_table import canonical
from ir.lower.verbs import thread_counts
from ir.machine import Cost, Machine
from ir.memo import Recent
from ir.nest.nest import (
    Dot,
    Launch,
    Load,
    Loop,
    LoopNest,
    Map,
    Parameter,
    Store,
)
from ir.recurrence import recurrences
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import DTYPES, Number, Spec
from ir.variant.expansion import reverse_scans
from ir.variant.masks import masked_at
from machines.gpu.boxes import in_steps_of_one, share_inside
from machines.gpu.depthwise_seeds import depthwise_seeds
from machines.gpu.index_roles import extents, last_stored, roles
from machines.gpu.phase_seeds import phase_seeds
from machines.gpu.pixel_seeds import pixel_seeds
from machines.gpu.plans import Plan, narrow_plans, short_plan, stepwise_plan, wide_plans
from machines.gpu.prefetched import deepest, prefetched
from machines.gpu.quick_cost import LaunchWork, few_threads, usual_threads, work
from machines.gpu.split_seeds import split_seeds
from machines.gpu.tile_choices import LONGEST, UNALIGNED, VECTOR, tile_choices

MOST_TRIED = 96  # combinations that are all tried; of more, a hill climb finds the best
MOST_MAPPED = 1024  # launches whose mapping is cached
GROUP_SIZE = 8
OF_PRODUCT = 128  # accumulator elements that one thread usually holds
OF_ROW = 16  # elements of a row
# Tolerated spills, by a guess that counts operands in shared memory too; and tolerated slowdown by the better cost
SPILLED, NO_WORSE = 0.5, 1.2
ROUNDED = "tf32"  # the dtype to which copies round f32 operands
LINE = 32  # elements of that dtype in a line of 128 bytes
# Bytes per thread of a pointwise kernel: one access. On an H200 a ReLU of 6 GB took 3.03 ms so, and 3.08 ms with four
# accesses a thread.
OF_POINT = 16
# Multiple of the least estimate beyond which the better cost, which takes most of a search, is not evaluated: for 45
# kernels of a ResNet-50 its choice was within 6.6 times. Such schedules keep their order, far after all others.
FAR, BEYOND = 8.0, 1e6
DOUBT = 0.01  # relative difference of estimates that counts as a tie, which the preferred one wins
# Factor on the estimate of a split-K matmul. On an H200 a convolution of 98 pixels took 69 us in 18 parts, of which
# their reduction was 51, and 25 us as a whole; the time model estimated 32 and 33.
IN_PARTS = 1.1
# Factor on the estimate of half as many threads where filter taps are flattened. On an H200 five pairs of such TF32
# schedules took 0.67 to 0.96 of the time so, and 0.72 to 1.54 by the time model.
HALVED = 0.85


@dataclass(frozen=True, slots=True)
class _Found:
    """A schedule that was tried, and its time in microseconds."""

    us: float
    schedule: Schedule
    spilled: float = 0.0  # bytes that do not fit into registers, over those that do
    quick_us: float = 0.0  # by the estimate, where `us` is by the better cost

    def beats(self, other: _Found) -> bool:
        """Whether this one is better: it does not spill and the other does, or it is faster by more than the tie
        threshold."""
        if bool(self.spilled) != bool(other.spilled):
            return not self.spilled and self.us < inf
        if (
            other.us < inf
            and self.us <= other.us * (1 + DOUBT)
            and other.us <= self.us * (1 + DOUBT)
        ):
            return self.quick_us * (1 + DOUBT) < other.quick_us
        return self.us * (1 + DOUBT) < other.us


@dataclass(frozen=True, slots=True)
class _Mapped:
    """The decisions of a single launch, and their cost. us: of one run. spilled: see `_Found`."""

    stages: tuple[Decision, ...]
    threads: Decision
    us: float
    spilled: float


def seed(
    spec: Spec,
    machine: Machine,
    sizes: Mapping[str, int],
    rounded: Collection[str] = (),
    cost: Cost | None = None,
) -> Schedule:
    """The best of a few hundred schedules by the estimate, or by `cost`; see `ir.autoschedule`. Raises KernelError
    where the spec cannot be lowered at all."""
    return _Search(spec, machine, sizes, rounded, cost).best()


class _Search:
    """Searches tile sizes under each plan."""

    def __init__(
        self,
        spec: Spec,
        machine: Machine,
        sizes: Mapping[str, int],
        rounded: Collection[str] = (),
        cost: Cost | None = None,
    ):
        self.cost = cost
        self.spec = spec
        self.machine = machine
        self.sizes = sizes
        self.bound = bind(spec, sizes)
        self.stepped = frozenset(r.index for r in recurrences(spec))
        self.plans = wide_plans(spec, machine, self.bound)
        self.narrow = narrow_plans(spec, machine, self.bound, self.plans, rounded)
        for made in (stepwise_plan(spec, machine), short_plan(spec, machine, self.bound)):
            if made is not None:
                (self.narrow or self.plans).append(made)
        mirrors = tuple(Decision("mirror", scan) for scan in reverse_scans(spec))
        if mirrors:  # a launch that rereads a scan from its end moves twice as much
            self.plans = [replace(p, base=(*mirrors, *p.base)) for p in self.plans] + self.plans
        self.fault: KernelError | None = None
        self.least = inf  # least microseconds so far by the estimate, without spills
        # Few launches of a kernel change with a tile, so the others come from the cache. Plans that differ only in
        # prefetching have the same nests.
        self.mapped: Recent[Launch, _Mapped] = Recent(MOST_MAPPED)
        self.nests: dict[Schedule, LoopNest] = {}

    def best(self) -> Schedule:
        """The best schedule. Narrow precision comes first where it is available, as its rate is a multiple."""
        found = self._found(self.narrow)
        if not found or found[0].us == inf or found[0].spilled:
            wide = self._found(self.plans)
            fits = wide[0].us < inf and not wide[0].spilled
            found = wide if fits or not found or found[0].us == inf else found
        least = min(f.us for f in found)
        if least == inf:
            raise self.fault or KernelError(
                f"`{self.spec.name}` has no schedule on `{self.machine.name}`"
            )
        alike = [f for f in found if f.us <= least * (1 + DOUBT)]
        quick = min(f.quick_us for f in alike)
        alike = [f for f in alike if f.quick_us <= quick * (1 + DOUBT)]
        if recurrences(self.spec) and not alike[0].schedule.of("compute"):
            # Steps on the threads: the first has the smallest tiles, whose few threads wait longest.
            return min(alike, key=lambda f: f.us).schedule
        return self._with_other_tiles(self._with_usual_share(alike[0].schedule))

    def _with_other_tiles(self, schedule: Schedule) -> Schedule:
        """The schedule with tiles that others were measured slower than, where the better cost prefers those."""
        if self.cost is None:
            return schedule
        own = self.spec, self.machine, self.bound, schedule
        made = (pixel_seeds, phase_seeds, depthwise_seeds, split_seeds)
        others = (one for seeds in made for one in seeds(*own))
        tried = ((1.0, schedule), *self._halved(schedule), *others)
        # A schedule that does not lower has infinite cost.
        return min(tried, key=lambda one: one[0] * self._costs(one[1], inf))[1]

    def _halved(self, schedule: Schedule) -> Iterator[tuple[float, Schedule]]:
        """A TF32 convolution of flattened taps with half as many threads, and a factor on its estimate."""
        flat = {d.subject for d in schedule.of("flatten")}
        threads, *more = schedule.of("threads") or (None,)
        rounded = any(d.option("dtype") == ROUNDED for d in schedule.of("precision"))
        if threads is None or more or not rounded or not flat & roles(self.spec).taps:
            return
        count = threads.number("count") // 2
        if count >= usual_threads(self.machine):
            half = replace(threads, options=(("count", count),))
            decisions = tuple(half if d is threads else d for d in schedule.decisions)
            yield HALVED, replace(schedule, decisions=decisions)

    def _with_usual_share(self, schedule: Schedule) -> Schedule:
        """A convolution of rounded operands with the usual number of accumulator elements per thread; other schedules
        unchanged.

        The estimates prefer more threads. On an H100 the convolutions of three transposed ones took 0.86 to 0.98 of the
        time with 128 threads for 128 rows and columns, against 256, by their profiles. With bulk copies a block takes
        one line of K per step where two blocks then fit: one such took 1820 us on an H200 with 256 threads, and 1434
        so. The time model overestimates that one.
        """
        copies = any(d.option("dtype") == ROUNDED for d in schedule.of("pack"))
        if not copies and not any(t.dtype == ROUNDED for t in self.spec.inputs):
            return schedule
        fewer = self._with_fewer_threads(schedule)
        if fewer is None and schedule.of("copy"):
            fewer = self._with_fewer_threads(self._in_lines(schedule))
            return fewer or schedule
        if fewer is None or self._taken(fewer) > NO_WORSE * self._taken(schedule):
            return schedule
        return fewer

    def _taken(self, schedule: Schedule) -> float:
        """The cost of a schedule of one matmul."""
        nest = lower(self.spec, schedule, self.machine, self.sizes)
        count = schedule.of("threads")[-1].number("count")
        return self._costs(schedule, work(nest.launches[-1], self.machine, self.bound).us(count))

    def _with_fewer_threads(self, schedule: Schedule) -> Schedule | None:
        """The schedule with the usual accumulator elements per thread. None where it has them, spills, or no two blocks
        fit."""
        nest = lower(self.spec, schedule, self.machine, self.sizes)
        launch, (*_, threads) = nest.launches[-1], schedule.of("threads")
        dots = [s.value for s in launch.statements() if isinstance(s, Dot)]
        if len(dots) != 1 or not roles(self.spec).taps or threads.subject != _last_stored(launch):
            return None
        counted = work(launch, self.machine, self.bound)
        share = counted.counter.elements(dots[0]) // OF_PRODUCT
        count = max(usual_threads(self.machine), share)
        alone = 2 * counted.taken[1] > self.machine.on_chip_bytes
        if count >= threads.number("count") or counted.residence(count).spilled > SPILLED or alone:
            return None
        fewer = replace(threads, options=(("count", count),))
        decisions = tuple(fewer if d is threads else d for d in schedule.decisions)
        return replace(schedule, decisions=decisions)

    def _in_lines(self, schedule: Schedule) -> Schedule:
        """The schedule with one line of K per step."""
        own, lengths = roles(self.spec), extents(self.spec, self.sizes)
        merged = {i for d in schedule.of("flatten") for i in (d.subject, d.option("inner"))}
        merged |= {d.option("over") for d in schedule.of("split_k")}
        cut = {i for i in own.summed - own.taps - merged if lengths[i] > LINE}
        kept = (d for d in schedule.decisions if d.subject.removesuffix(".outer") not in cut)
        tiles = (d for i in sorted(cut) for d in tiled(i, LINE, "loop"))
        return canonical(Schedule(schedule.kernel, (*kept, *tiles)))

    def _found(self, plans: Sequence[Plan]) -> list[_Found]:
        """The schedules tried under some plans; only those that do not spill, where there are any."""
        found = [one for plan in plans for one in self._under(plan)]
        return [f for f in found if f.us < inf and not f.spilled] or found

    def _under(self, plan: Plan) -> Iterator[_Found]:
        """The schedules tried under a plan: every combination, or a hill climb to the best."""
        choices = tile_choices(plan.formed, plan.roles, self.bound, plan.parts, plan.cut)
        bounds = tuple(_causal_bounds(plan.formed))
        tried: dict[tuple[int, ...], _Found] = {}

        def at(point: tuple[int, ...]) -> _Found:
            if point not in tried:
                tiles = [c[n] for c, n in zip(choices, point, strict=True)]
                tried[point] = self._try(plan, tuple(d for t in tiles for d in t), bounds)
            return tried[point]

        if prod(map(len, choices)) <= MOST_TRIED:
            for point in product(*(range(len(c)) for c in choices)):
                yield at(point)
            return
        for start in (tuple(0 for _ in choices), tuple(len(c) // 2 for c in choices)):
            yield climb(start, [len(c) for c in choices], at)

    def _try(self, plan: Plan, tiles: tuple[Decision, ...], bounds: tuple[Decision, ...]) -> _Found:
        looped = {d.subject for d in tiles if d.verb == "tile"}
        nothing = _Found(inf, Schedule(self.spec.name))
        if plan.needs_loop and not looped & reduced(self.spec, plan.made):
            return nothing
        decisions = (*plan.base, *_ordered(self.spec, tiles), *plan.made)
        shorter = [d for d in bounds if {d.subject, d.option("at")} <= looped]
        for more in (shorter, []) if shorter else ([],):
            schedule = Schedule(self.spec.name, (*decisions, *more))
            try:
                nest = self._nest(canonical(schedule))
            except KernelError as error:
                self.fault = self.fault or error
                continue
            found = self._with_threads(nest, plan)
            return replace(found, us=IN_PARTS * found.us) if _in_parts(plan) else found
        return nothing

    def _nest(self, schedule: Schedule) -> LoopNest:
        """The nest of a schedule that does not yet decide threads and rasterization."""
        if (found := self.nests.get(schedule)) is None:
            if len(self.nests) >= MOST_MAPPED:
                self.nests.clear()
            found = lower(self.spec, schedule, self.machine, self.sizes)
            self.nests[schedule] = found
        return found

    def _with_threads(self, nest: LoopNest, plan: Plan) -> _Found:
        """The nest's schedule with pipeline stages, threads and rasterization, and its time."""
        us, spilled, more = 0.0, 0.0, []
        for launch in nest.launches:
            names = prefetched(launch, self.stepped, plan.ahead)
            if (mapped := self.mapped.get(launch, names)) is None:
                mapped = self.mapped.put(launch, names, self._mapped(launch, names))
            us += launch.times(self.bound) * mapped.us
            spilled = max(spilled, mapped.spilled)
            more += [*mapped.stages, *self._swizzle(launch, plan)]
            more.append(mapped.threads)
        unique = {(d.verb, d.subject): d for d in more}
        schedule = canonical(
            Schedule(nest.schedule.kernel, (*nest.schedule.decisions, *unique.values()))
        )
        if self.cost and us > FAR * self.least:
            return _Found(BEYOND * us, schedule, spilled, us)
        if not spilled:
            self.least = min(self.least, us)
        found = _Found(self._costs(schedule, us), schedule, spilled, us if self.cost else 0.0)
        if plan.fewer and self.cost:
            found = min(found, self._with_half(found, nest), key=lambda f: f.us)
        if not plan.apart or not in_steps_of_one(nest, plan.apart):
            return found
        # An operand rounded after its load may have boxes at the edges of a tensor. A copy has boxes of windows only.
        inside = share_inside(nest, plan.apart, self.bound, windows=plan.ahead)
        return self._in_bulk(found, plan, us, inside)

    def _with_half(self, found: _Found, nest: LoopNest) -> _Found:
        """The same with half as many threads in the last launch."""
        last = _last_stored(nest.launches[-1])
        decision = next(d for d in found.schedule.of("threads") if d.subject == last)
        fewer = decision.number("count") // 2
        if fewer < usual_threads(self.machine):
            return found
        half = replace(decision, options=(("count", fewer),))
        made = (half if d is decision else d for d in found.schedule.decisions)
        schedule = replace(found.schedule, decisions=tuple(made))
        return replace(found, us=self._costs(schedule, found.quick_us), schedule=schedule)

    def _mapped(self, launch: Launch, names: Collection[str]) -> _Mapped:
        deep, stages = deepest(launch, names, self.machine, self.bound)
        counted = work(deep, self.machine, self.bound)
        threads = self._threads(launch, counted)
        decision = Decision("threads", _last_stored(launch), (("count", threads),))
        spilled = counted.residence(threads).spilled
        return _Mapped(tuple(stages), decision, counted.us(threads), spilled)

    def _in_bulk(self, found: _Found, plan: Plan, us: float, inside: float) -> _Found:
        """The same with TMA copies of prepacked operands, where not slower. inside: the share of the boxes in bounds."""
        moved = [
            copy(d.subject, "bulk")
            for d in found.schedule.of("pipeline")
            if d.subject in plan.apart
        ]
        decided = (*found.schedule.decisions, *moved)
        schedule = canonical(Schedule(found.schedule.kernel, decided))
        if not moved:
            return found
        legal = self.cost or fits(self.spec, schedule, self.machine, self.sizes)
        us = self._costs(schedule, us) / inside if legal else inf
        return replace(found, us=us, schedule=schedule) if us <= found.us else found

    def _costs(self, schedule: Schedule, us: float) -> float:
        """The cost of a schedule: `us`, or the better cost where one is given."""
        if self.cost is None:
            return us
        try:
            return self.cost(lower(self.spec, schedule, self.machine, self.sizes))
        except KernelError as error:  # it was legal before the addition
            self.fault = self.fault or error
            return inf

    def _threads(self, launch: Launch, counted: LaunchWork) -> int:
        """The fastest number of threads without spills; ties go to the usual number of elements per thread."""
        products = [s.value for s in launch.statements() if isinstance(s, Dot)]
        tables = counted.counter.tables
        if each := _each(launch):
            largest = max(counted.counter.elements(v.name) for v in launch.values)
            wanted = max(self.machine.warp, largest / each)
            return min(thread_counts(self.machine), key=lambda c: abs(log2(c / wanted)))
        names = products or [v.name for v in launch.values if v.name not in tables]
        largest = max(counted.counter.elements(n) for n in names)
        fewest = usual_threads(self.machine) if products else few_threads(self.machine)
        of_row = OF_ROW * (2 if _is_large_part_of_rows(launch, largest) else 1)
        share = max(fewest, largest / (OF_PRODUCT if products else of_row))
        counts = thread_counts(self.machine)
        padded = any(isinstance(s, Load) and s.pad is not None for s in launch.statements())
        if padded and not products:
            # Windows: blocks of one warp would exchange what they store, as their threads hold vectors of what they
            # load.
            counts = tuple(c for c in counts if c >= min(fewest, largest))
        if products and launch.times(self.bound) > 1:
            # A step of a recurrence waits for exchanges between its threads, which the estimate does not count.
            counts = tuple(c for c in counts if c <= fewest)
        return min(
            counts,
            key=lambda c: (
                (here := counted.residence(c)).spilled > 0,
                counted.us_of(here) * (1 + DOUBT * abs(log2(c / share))),
                c,
            ),
        )

    def _swizzle(self, launch: Launch, plan: Plan) -> Iterator[Decision]:
        """Rasterizes the tiles of a large matmul in groups, so that both operands stay in L2.

        Output pixels keep their order: neighbours read the same part of an image, and store the rest of each other's
        lines. On an H200 a convolution of 128 images of 65 x 65 took 970 us in groups of images, and 688 us without.
        """
        counts = {g.index: ceil(number(g.size, self.bound) / g.tile) for g in launch.grid}
        if prod(counts.values()) <= 2 * self.machine.parallel:
            return
        for rows, columns in plan.roles.sides:
            cut = [[i for i in counts if i in side and counts[i] > 1] for side in (rows, columns)]
            if plan.roles.taps and any(len(side) > 1 for side in cut):
                return
            for row, column in product(*cut):
                if counts[row] >= 2 * GROUP_SIZE and counts[column] >= GROUP_SIZE // 2:
                    yield Decision("rasterize", row, (("size", GROUP_SIZE), ("over", column)))
                    return


def _in_parts(plan: Plan) -> bool:
    """Whether a matmul is split along K."""
    multiplied = {d.subject for d in plan.base if d.verb == "compute"}
    return any(d.verb == "split_k" and d.subject in multiplied for d in plan.made)


def _causal_bounds(spec: Spec) -> Iterator[Decision]:
    """Yields causal bounds: loops whose masked iterations can be skipped."""
    for index in dict.fromkeys(i for e in spec.equations for i in e.reduced):
        for at in masked_at(spec, index):
            yield Decision("causal_bound", index, (("at", at),))


def _ordered(spec: Spec, tiles: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Tiles whose grid loops follow the order of the last output's indices; other loops come last."""
    last = last_stored(spec)

    def rank(d: Decision) -> int:
        index = d.subject.removesuffix(".outer")
        grid = d.option("level") == "grid" and index in last
        return last.index(index) if grid else len(last)

    return tuple(sorted(tiles, key=rank))


def _each(launch: Launch) -> float:
    """Elements per thread of a pointwise launch that is contiguous in all tensors; 0 for other launches."""
    if not all(isinstance(s, Load | Store | Map) for s in launch.statements()):
        return 0
    moves = [s for s in launch.statements() if isinstance(s, Load | Store)]
    ends = [s.region[-1] for s in moves if s.region and s.region[-1].axis]
    if any(one.rows is not None or one.step > 1 for one in ends):
        return 0
    if len({one.terms for one in ends}) != 1 or len(ends[0].terms) != 1:
        return 0
    stored = {s.value for s in moves if isinstance(s, Store)}
    return OF_POINT / max(DTYPES[v.dtype] for v in launch.values if v.name in stored)


def _is_large_part_of_rows(launch: Launch, largest: float) -> bool:
    """Whether tiles are large parts of unaligned or very long rows, so that a thread needs many loads in flight. On an
    H200 a norm of such rows took 6.6 ms with 16 elements per thread, and 6.2 ms with 32. Exponentials of the longest
    took 4.51 and 4.44 ms there, 6.40 and 6.21 ms on an H100."""
    if not any(isinstance(s, Loop) for s in launch.statements()):
        return False
    rows = [number(p.shape[-1], {}) for p in launch.parameters if _has_rows(p)]
    unaligned = any(n >= UNALIGNED[0] and n % VECTOR for n in rows)
    return largest in (*UNALIGNED[1], *LONGEST[1]) and (
        unaligned or max(rows, default=0) >= LONGEST[0]
    )


def _has_rows(p: Parameter) -> bool:
    return len(p.shape) > 1 and isinstance(p.shape[-1], Number)


def _last_stored(launch: Launch) -> str:
    """The last tensor that a launch stores."""
    return [s.tensor for s in launch.statements() if isinstance(s, Store)][-1]
