"""The seed schedule of a GPU: tiles are powers of two that registers hold.

Tile sizes of each index come from what the index does: indices of products get sides that a
matrix unit fills, rows are whole where they fit, whatever a product does in a batch and the
taps of a window go one at a time. The estimate chooses among them, and the threads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, inf, log2, prod

from ir.autoschedule.climb import climb
from ir.autoschedule.seeds import (
    alongside,
    hoisted,
    launch_ends,
    online,
    reduced,
    walked,
)
from ir.contraction import contraction
from ir.edits.stages import copy, pipeline
from ir.errors import KernelError
from ir.lower.lower import fits, lower
from ir.lower.verb_table import canonical
from ir.lower.verbs import thread_counts
from ir.machine import Cost, Machine
from ir.memo import Recent
from ir.nest.nest import Dot, Launch, Load, Loop, LoopNest, Map, Statement, Store, Tile
from ir.recurrence import recurrences
from ir.schedule import Decision, Schedule
from ir.sizes import bind
from ir.sizes import value as number
from ir.spec import Read, Spec
from ir.variant.associate import associable
from ir.variant.derived import TRIPLE, copy_of, names
from ir.variant.masks import masked_at
from ir.variant.narrow import in_range
from ir.variant.precision import NARROW
from ir.variant.variant import formulate
from ir.verify import facts
from machines.gpu.boxes import in_steps_of_one, share_inside
from machines.gpu.index_roles import Roles, last_stored, roles
from machines.gpu.quick_cost import LaunchWork, usual_threads, work
from machines.gpu.shared_memory import shared_bytes
from machines.gpu.tile_choices import tile_choices
from machines.gpu.two_pass import stored_apart, two_pass
from machines.gpu.units import added, units
from machines.gpu.windowed import depthwise, windowed
from machines.gpu.windowed import rounded as rounded_copies

MOST_TRIED = 96  # combinations of tiles that are all tried; of more, the best is climbed to
MOST_MAPPED = 1024  # launches whose mapping is kept
STAGES = (3, 2)
AHEAD = 0.9  # of shared memory, that tiles in flight may take: a backend needs some for itself
GROUP_SIZE = 8
FEWER = 8  # times as few parts of a product, which are tried too
OF_PRODUCT = 128  # elements of a product that one thread usually holds
OF_ROW = 16  # elements of anything else
REWRITES = ("associate", "atomic", "carry", "pack", "flatten")  # bring other equations
DOUBT = 0.01  # of the estimate: what is preferred wins where it takes so little more


@dataclass(frozen=True, slots=True)
class _Found:
    """A schedule that was tried, and its time in microseconds."""

    us: float
    schedule: Schedule
    spilled: float = 0.0  # bytes that do not fit into registers, over those that do
    quick_us: float = 0.0  # by the estimate, where `us` is by a better judge

    def beats(self, other: _Found) -> bool:
        """Whether it is better: its registers suffice where the other's do not, or it is faster
        by more than the doubt."""
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
    """What is decided for a launch by itself, and what it then takes. us: of one of its runs.
    spilled: as of `_Found`."""

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
    """The best of a few hundred schedules by the estimate; raises KernelError where the spec
    cannot be lowered at all. rounded, cost: see `ir.autoschedule`."""
    return _Search(spec, machine, sizes, rounded, cost).best()


@dataclass(frozen=True, slots=True)
class _Plan:
    """Decisions that come before tiles."""

    made: tuple[Decision, ...]
    formed: Spec  # the equations after these decisions
    roles: Roles
    base: tuple[Decision, ...]  # decisions that suit these equations with any tiles
    needs_loop: bool  # whether they pay only where a reduction is a loop
    # Whether operands of a matmul are prefetched although they are rounded after the load
    ahead: bool = False
    apart: frozenset[str] = frozenset()  # prepacked operands, made by launches of their own

    @property
    def cut(self) -> frozenset[str]:
        """The indices whose tiles are decided; of a copy, those that have none too."""
        copies = tuple(f"{copy_of(d)}_" for d in self.made if d.verb == "pack")
        return frozenset(i for i in facts(self.formed).ranges if copies and i.startswith(copies))

    @property
    def parts(self) -> Mapping[str, int]:
        """Into how many parts a reduction over an index is split."""
        return {str(d.option("over")): d.number("parts") for d in self.made if d.verb == "split_k"}


def _two_pass_plan(spec: Spec, machine: Machine, made: tuple[Decision, ...]) -> _Plan:
    """Reductions in two stages: what is decided on the spec's own equations holds for their
    parts."""
    ends = dict.fromkeys((*launch_ends(spec), *stored_apart(spec, made)))
    return _Plan(made, spec, roles(spec), (*ends, *units(spec, machine)), False)


def _plan(spec: Spec, machine: Machine, made: tuple[Decision, ...]) -> _Plan:
    other = any(d.verb in REWRITES for d in made)
    formed = formulate(spec, Schedule(spec.name, made)) if other else spec
    base = in_range(spec, made, (*launch_ends(formed), *units(formed, machine)), machine)
    return _Plan(made, formed, roles(formed), base, bool(made) and not other)


def _narrowed(plan: _Plan, machine: Machine, rounded: Collection[str]) -> _Plan | None:
    """The plan with products of f32 as ones of a narrower dtype; None where it has none, or the
    machine gains little by it."""
    decided = {d.subject for d in plan.base if d.verb == "precision"}
    made = [
        Decision("precision", d.subject, (("dtype", NARROW if d.subject in rounded else TRIPLE),))
        for d in plan.base
        if d.verb == "compute" and d.subject not in decided and _wide(plan.formed, d.subject)
    ]
    if not made or not (_gains(machine, 1) if rounded else _gains(machine, 3)):
        return None
    return replace(plan, base=(*plan.base, *made))


def _apart(plan: _Plan) -> _Plan | None:
    """The plan with the parts of products of three made by launches of their own, so that the
    products' loops only load; None where it has no such product."""
    triple = [d for d in plan.base if d.verb == "precision" and d.option("dtype") == TRIPLE]
    ends = [Decision("kernel", f"{d.subject}_{part}") for d in triple for part in ("al", "bl")]
    parts = frozenset(part for d in triple for part in names(d))
    return replace(plan, base=(*ends, *plan.base), apart=parts) if ends else None


def _stepwise(spec: Spec, machine: Machine) -> _Plan | None:
    """The products of a recurrence's steps on the threads: few rows leave the matrix unit idle, and
    a step waits for its slowest program. None where it has no product."""
    inside = {t for r in recurrences(spec) for t in r.targets if contraction(spec.equation(t))}
    outside = (d for d in units(spec, machine) if d.subject not in inside)
    base = (*launch_ends(spec), *outside)
    return _Plan((), spec, roles(spec, inside), base, False) if inside else None


def _copied(
    spec: Spec, machine: Machine, made: tuple[Decision, ...], parts: tuple[Decision, ...]
) -> _Plan:
    """A plan with copies that products load as they are, the products perhaps in parts."""
    copies = frozenset(copy_of(d) for d in made if d.verb == "pack")
    return replace(_plan(spec, machine, made), made=(*made, *parts), apart=copies)


def _several(parts: tuple[Decision, ...]) -> Iterator[tuple[Decision, ...]]:
    """No parts, so many, and a few: those are reduced again, and what is loaded for a product may
    keep more programs busy than its result has tiles."""
    yield ()
    for share in (1, FEWER) if len(parts) == 1 else ():
        (split,) = parts
        count = split.number("parts") // share
        if count > 1:
            yield (replace(split, options=(split.options[0], ("parts", count))),)


def _wide(spec: Spec, target: str) -> bool:
    """Whether both operands of a product are of f32, or made of what is."""
    found = contraction(spec.equation(target))
    tensors = facts(spec).tensors
    return found is not None and all(
        tensors[n.tensor].dtype == "f32"
        for side in (found.a, found.b)
        for n in side.walk()
        if isinstance(n, Read)
    )


def _gains(machine: Machine, products: int) -> bool:
    """Whether so many narrow products take half the time of one of f32, or less."""
    unit = machine.units.get("matrix")
    if unit is None or NARROW not in unit.flops or "f32" not in unit.flops:
        return False
    return unit.flops[NARROW] >= 2 * products * unit.flops["f32"]


class _Search:
    """Tries tile sizes under each plan."""

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
        self.plans = [
            *(
                _plan(spec, machine, made)
                for made in dict.fromkeys(
                    ((), online(spec), hoisted(spec), added(spec), alongside(spec), walked(spec))
                )
            ),
            *(_plan(spec, machine, (Decision("associate", t),)) for t in associable(spec)),
            *(_plan(spec, machine, made) for made in windowed(spec, self.bound)),
            *(_plan(spec, machine, made) for made in depthwise(spec, self.bound)),
        ]
        if parts := two_pass(spec, machine, self.bound):
            self.plans.append(_two_pass_plan(spec, machine, parts))
        narrow = [n for o in self.plans if (n := _narrowed(o, machine, rounded))]
        apart = [a for n in narrow if (a := _apart(n))]
        copies = rounded_copies(spec, self.bound, rounded) if _gains(machine, 1) else ()
        self.narrow = [
            *narrow,
            *(replace(n, ahead=True) for n in narrow),
            *apart,
            *(_copied(spec, machine, made, more) for made in copies for more in _several(parts)),
        ]
        if stepwise := _stepwise(spec, machine):
            (self.narrow or self.plans).append(stepwise)
        self.fault: KernelError | None = None
        # Few launches of a kernel change with each tile: the others come again.
        self.mapped: Recent[Launch, _Mapped] = Recent(MOST_MAPPED)

    def best(self) -> Schedule:
        """Products in a narrow precision where that is to be had, as their rate is a multiple."""
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
        return alike[0].schedule

    def _found(self, plans: Sequence[_Plan]) -> list[_Found]:
        """What was tried under some plans: what fits registers, where anything does."""
        found = [one for plan in plans for one in self._under(plan)]
        return [f for f in found if f.us < inf and not f.spilled] or found

    def _under(self, plan: _Plan) -> Iterator[_Found]:
        """What was tried under a plan: every combination, or a climb to the best."""
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

    def _try(
        self, plan: _Plan, tiles: tuple[Decision, ...], bounds: tuple[Decision, ...]
    ) -> _Found:
        looped = {d.subject for d in tiles if d.verb == "tile"}
        nothing = _Found(inf, Schedule(self.spec.name))
        if plan.needs_loop and not looped & reduced(self.spec, plan.made):
            return nothing
        decisions = (*plan.base, *_ordered(self.spec, tiles), *plan.made)
        shorter = [d for d in bounds if {d.subject, d.option("at")} <= looped]
        for more in (shorter, []) if shorter else ([],):
            schedule = Schedule(self.spec.name, (*decisions, *more))
            try:
                nest = lower(self.spec, canonical(schedule), self.machine, self.sizes)
            except KernelError as error:
                self.fault = self.fault or error
                continue
            return self._with_threads(nest, plan)
        return nothing

    def _with_threads(self, nest: LoopNest, plan: _Plan) -> _Found:
        """The nest's schedule with pipeline stages, threads and orders, and its time."""
        us, spilled, more = 0.0, 0.0, []
        for launch in nest.launches:
            if (mapped := self.mapped.get(launch, plan.ahead)) is None:
                mapped = self._mapped(launch, plan.ahead)
                self.mapped.put(launch, plan.ahead, mapped)
            us += launch.times(self.bound) * mapped.us
            spilled = max(spilled, mapped.spilled)
            more += [*mapped.stages, *self._swizzle(launch, plan)]
            more.append(mapped.threads)
        unique = {(d.verb, d.subject): d for d in more}
        schedule = canonical(
            Schedule(nest.schedule.kernel, (*nest.schedule.decisions, *unique.values()))
        )
        found = _Found(self._costs(schedule, us), schedule, spilled, us if self.cost else 0.0)
        if not plan.apart or not in_steps_of_one(nest, plan.apart):
            return found
        return self._in_bulk(found, plan, us, share_inside(nest, plan.apart, self.bound))

    def _mapped(self, launch: Launch, ahead: bool) -> _Mapped:
        deep, stages = self._deepest(launch, ahead)
        counted = work(deep, self.machine, self.bound)
        threads = self._threads(launch, counted)
        decision = Decision("threads", _last_stored(launch), (("count", threads),))
        spilled = counted.residence(threads).spilled
        return _Mapped(tuple(stages), decision, counted.us(threads), spilled)

    def _in_bulk(self, found: _Found, plan: _Plan, us: float, inside: float) -> _Found:
        """The same with TMA moving what was made for products, where it can and that
        is not slower. inside: the share of its boxes that is not copied for nothing."""
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
        """What a schedule costs, where a better judge than the estimate is given."""
        if self.cost is None:
            return us
        try:
            return self.cost(lower(self.spec, schedule, self.machine, self.sizes))
        except KernelError as error:  # it was legal without what was added
            self.fault = self.fault or error
            return inf

    def _threads(self, launch: Launch, counted: LaunchWork) -> int:
        """The fastest number of threads of those whose registers suffice; of equally fast ones,
        that with the usual share each."""
        products = [s.value for s in launch.statements() if isinstance(s, Dot)]
        tables = counted.counter.tables
        names = products or [v.name for v in launch.values if v.name not in tables]
        largest = max(counted.counter.elements(n) for n in names)
        fewest = usual_threads(self.machine) if products else self.machine.warp
        share = max(fewest, largest / (OF_PRODUCT if products else OF_ROW))
        counts = thread_counts(self.machine)
        if products and launch.times(self.bound) > 1:
            # A step of a recurrence waits for what its threads exchange, which the estimate does not see.
            counts = tuple(c for c in counts if c <= fewest)
        return min(
            counts,
            key=lambda c: (
                counted.residence(c).spilled > 0,
                counted.us(c) * (1 + DOUBT * abs(log2(c / share))),
                c,
            ),
        )

    def _deepest(self, launch: Launch, mapped: bool) -> tuple[Launch, list[Decision]]:
        """The launch with operands of products in loops in as many stages as shared memory allows. mapped: also
        those that something is made of before a product takes it."""
        names = _pipelined(launch, self.stepped, mapped)
        values = {v.name: v for v in launch.values}
        tensors = {values[n].tensor for n in names}
        for stages in STAGES:
            deep = replace(
                launch,
                values=tuple(
                    replace(v, stages=stages) if v.name in names else v for v in launch.values
                ),
            )
            taken = shared_bytes(deep, self.machine, self.bound)
            if names and taken <= AHEAD * self.machine.on_chip_bytes:
                return deep, [pipeline(t, stages) for t in sorted(tensors)]
        return launch, []

    def _swizzle(self, launch: Launch, plan: _Plan) -> Iterator[Decision]:
        """Rasterizes the tiles of a large matmul in groups, so that both operands stay in L2."""
        counts = {g.index: ceil(number(g.size, self.bound) / g.tile) for g in launch.grid}
        if prod(counts.values()) <= 2 * self.machine.parallel:
            return
        for rows, columns in plan.roles.sides:
            pairs = product([i for i in counts if i in rows], [i for i in counts if i in columns])
            for row, column in pairs:
                if counts[row] >= 2 * GROUP_SIZE and counts[column] >= GROUP_SIZE // 2:
                    yield Decision("rasterize", row, (("size", GROUP_SIZE), ("over", column)))
                    return


def _causal_bounds(spec: Spec) -> Iterator[Decision]:
    """Loops that a mask lets end or begin early: nothing is computed for what it removes."""
    for index in dict.fromkeys(i for e in spec.equations for i in e.reduced):
        for at in masked_at(spec, index):
            yield Decision("causal_bound", index, (("at", at),))


def _ordered(spec: Spec, tiles: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Tiles with the grid's loops in the order of the last output's indices, then the others."""
    last = last_stored(spec)

    def rank(d: Decision) -> int:
        index = d.subject.removesuffix(".outer")
        grid = d.option("level") == "grid" and index in last
        return last.index(index) if grid else len(last)

    return tuple(sorted(tiles, key=rank))


def _pipelined(launch: Launch, stepped: frozenset[str], mapped: bool) -> set[str]:
    """Values loaded in a loop and taken by a product there, or loaded in one over steps. mapped:
    also those of which a product takes what was made of them."""
    found: set[str] = set()

    def walk(block: tuple[Statement, ...]) -> None:
        sources = {s.value: {s.value} for s in block if isinstance(s, Load)}
        for s in block:
            if isinstance(s, Map) and mapped:
                read = [n.value for n in s.expression.walk() if isinstance(n, Tile)]
                sources[s.value] = {x for n in read for x in sources.get(n, ())}
            elif isinstance(s, Dot):
                for tile in (s.a, s.b, *s.scales):
                    found.update(sources.get(tile.value, ()))
            elif isinstance(s, Loop):
                walk(s.body)

    for s in launch.body:
        if isinstance(s, Loop):
            walk(s.body)
            if s.index in stepped and s.tile == 1:
                found |= {x.value for x in s.body if isinstance(x, Load)}
    return found


def _last_stored(launch: Launch) -> str:
    """The last tensor that a launch stores."""
    return [s.tensor for s in launch.statements() if isinstance(s, Store)][-1]
