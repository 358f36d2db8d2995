"""Plans: what is decided for a first schedule before its tiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ir.autoschedule.seeds import alongside, beside, hoisted, launch_ends, online, walked
from ir.contraction import contraction
from ir.machine import Machine
from ir.recurrence import recurrences
from ir.schedule import Decision, Schedule
from ir.sizes import value
from ir.spec import Read, Spec
from ir.variant.associate import associable
from ir.variant.derived import TRIPLE, copy_of, names
from ir.variant.narrow import in_range
from ir.variant.precision import NARROW
from ir.variant.variant import formulate
from ir.verify import facts
from machines.gpu.index_roles import Roles, roles
from machines.gpu.two_pass import stored_apart, two_pass
from machines.gpu.units import added, units
from machines.gpu.windowed import Apart, depthwise, filters_apart, of_rounded, windowed
from machines.gpu.windowed import rounded as rounded_copies

REWRITES = ("associate", "atomic", "carry", "pack", "flatten")  # bring other equations
SHORTEST_SUM = 16  # elements that a step of a matrix unit sums: fewer are padded to as many
FEWER = 8  # times as few parts of a product, which are tried too


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions that come before tiles."""

    made: tuple[Decision, ...]
    formed: Spec  # the equations after these decisions
    roles: Roles
    base: tuple[Decision, ...]  # decisions that suit these equations with any tiles
    needs_loop: bool  # whether they pay only where a reduction is a loop
    # Whether operands of a matmul are prefetched although they are rounded after the load
    ahead: bool = False
    apart: frozenset[str] = frozenset()  # prepacked operands, made by launches of their own
    fewer: bool = False  # whether half as many threads as the estimate wants are tried, too

    @property
    def cut(self) -> frozenset[str]:
        """The indices whose tiles are decided; of a copy, those that have none too."""
        copies = tuple(f"{copy_of(d)}_" for d in self.made if d.verb == "pack")
        return frozenset(i for i in facts(self.formed).ranges if copies and i.startswith(copies))

    @property
    def parts(self) -> Mapping[str, int]:
        """Into how many parts a reduction over an index is split."""
        return {str(d.option("over")): d.number("parts") for d in self.made if d.verb == "split_k"}


def wide_plans(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> list[Plan]:
    """Plans in the precisions that the spec has. sizes: the free and the derived ones."""
    first = (
        (),
        online(spec),
        hoisted(spec),
        added(spec),
        beside(spec),
        alongside(spec),
        walked(spec),
    )
    again = ((Decision("associate", t),) for t in associable(spec))
    made = (*dict.fromkeys(first), *again, *windowed(spec, sizes), *depthwise(spec, sizes))
    found = [_plan(spec, machine, one) for one in made]
    if parts := two_pass(spec, machine, sizes):
        found.append(_two_pass_plan(spec, machine, parts))
    return found


def narrow_plans(
    spec: Spec,
    machine: Machine,
    sizes: Mapping[str, int],
    wide: Sequence[Plan],
    rounded: Collection[str],
) -> list[Plan]:
    """Plans whose products of f32 are of a narrower dtype. wide: the others.  rounded: see `ir.autoschedule`."""
    narrow = [_lean(n, spec) for o in wide if (n := _narrowed(o, machine, rounded))]
    apart = [a for n in narrow if (a := _apart(n))]
    filters = filters_apart(spec, sizes) if narrow else ()
    once = [o for one in filters if (o := _filter_apart(spec, machine, one, rounded))]
    copies = rounded_copies(spec, sizes, rounded) if _gains(machine, 1) else ()
    ready = of_rounded(spec, sizes)
    parts = two_pass(spec, machine, sizes)
    return [
        *narrow,
        *(replace(n, ahead=True, apart=_read_once_rounded(n)) for n in narrow),
        *apart,
        *once,
        *(_copied(spec, machine, made, more) for made in copies for more in _several(parts)),
        *(_of_rounded(spec, machine, made, more) for made in ready for more in _several(parts)),
    ]


def _two_pass_plan(spec: Spec, machine: Machine, made: tuple[Decision, ...]) -> Plan:
    """Reductions in two stages: what is decided on the spec's own equations holds for their
    parts."""
    ends = dict.fromkeys((*launch_ends(spec), *stored_apart(spec, made)))
    return Plan(made, spec, roles(spec), (*ends, *units(spec, machine)), False)


def _plan(spec: Spec, machine: Machine, made: tuple[Decision, ...]) -> Plan:
    other = any(d.verb in REWRITES for d in made)
    formed = formulate(spec, Schedule(spec.name, made)) if other else spec
    base = in_range(spec, made, (*launch_ends(formed), *units(formed, machine)), machine)
    return Plan(made, formed, roles(formed), base, bool(made) and not other)


def _narrowed(plan: Plan, machine: Machine, rounded: Collection[str]) -> Plan | None:
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


def _apart(plan: Plan) -> Plan | None:
    """The plan with the parts of products of three made by launches of their own, so that the
    products' loops only load; None where it has no such product."""
    triple = [d for d in plan.base if d.verb == "precision" and d.option("dtype") == TRIPLE]
    ends = [Decision("kernel", f"{d.subject}_{part}") for d in triple for part in ("al", "bl")]
    parts = frozenset(part for d in triple for part in names(d))
    return replace(plan, base=(*ends, *plan.base), apart=parts) if ends else None


def _lean(plan: Plan, spec: Spec) -> Plan:
    """The plan, which tries fewer threads where taps of a window are merged: each thread finds where its taps lie. Of
    eight pairs of such schedules in TF32 on an H100, that with 128 threads took 0.79 to 0.99 of the time with 256."""
    reduced = {i for e in spec.equations for i in e.reduced}
    merged = any(d.verb == "flatten" and d.subject in reduced for d in plan.made)
    return replace(plan, fewer=True) if merged else plan


def _read_once_rounded(plan: Plan) -> frozenset[str]:
    """What products read that round their operands once, behind the loads: boxes of it may be moved in bulk."""
    single = {d.subject for d in plan.base if d.verb == "precision" and d.option("dtype") == NARROW}
    found = (contraction(plan.formed.equation(t)) for t in single)
    sides = (side for c in found if c is not None for side in (c.a, c.b))
    return frozenset(n.tensor for side in sides for n in side.walk() if isinstance(n, Read))


def _filter_apart(
    spec: Spec, machine: Machine, one: Apart, rounded: Collection[str]
) -> Plan | None:
    """A convolution of three products, whose loop splits what windows slide over and loads the parts of the filter;
    None where it is not of three."""
    plan = _narrowed(_plan(spec, machine, one.made), machine, rounded)
    if plan is None or not any(d.option("dtype") == TRIPLE for d in plan.base):
        return None
    return replace(plan, made=(*plan.made, *one.parts), ahead=True, fewer=True)


def stepwise_plan(spec: Spec, machine: Machine) -> Plan | None:
    """The products of a recurrence's steps on the threads: few rows leave the matrix unit idle, and
    a step waits for its slowest program. None where it has no product."""
    inside = {t for r in recurrences(spec) for t in r.targets if contraction(spec.equation(t))}
    outside = (d for d in units(spec, machine) if d.subject not in inside)
    base = (*launch_ends(spec), *outside)
    return Plan((), spec, roles(spec, inside), base, False) if inside else None


def short_plan(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Plan | None:
    """Products that sum fewer elements than a step of a matrix unit takes, on the threads: the unit would
    multiply padding. None where there is no such product, and in recurrences."""
    ranges = facts(spec).ranges
    found = {e.target: c.over for e in spec.equations if (c := contraction(e))}
    short = {
        t
        for t, over in found.items()
        if prod(value(ranges[i].high, sizes) for i in over) < SHORTEST_SUM
    }
    decided = list(units(spec, machine))
    if not short & {d.subject for d in decided} or recurrences(spec):
        return None
    base = (*launch_ends(spec), *(d for d in decided if d.subject not in short))
    return Plan((), spec, roles(spec, short), base, False)


def _copied(
    spec: Spec, machine: Machine, made: tuple[Decision, ...], parts: tuple[Decision, ...]
) -> Plan:
    """A plan with copies that products load as they are, the products perhaps in parts."""
    copies = frozenset(copy_of(d) for d in made if d.verb == "pack")
    return replace(_plan(spec, machine, made), made=(*made, *parts), apart=copies)


def _of_rounded(
    spec: Spec, machine: Machine, made: tuple[Decision, ...], parts: tuple[Decision, ...]
) -> Plan:
    """The same for a convolution whose operands were rounded before."""
    operands = frozenset(t.name for t in spec.inputs if t.dtype == NARROW)
    return replace(_plan(spec, machine, made), made=(*made, *parts), apart=operands)


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
