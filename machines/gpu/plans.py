"""Plans: the decisions of a seed schedule that precede its tile sizes."""

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

REWRITES = ("associate", "atomic", "carry", "pack", "flatten")  # verbs that rewrite the equations
SHORTEST_SUM = 16  # K of one matrix instruction: a shorter K is padded to it
FEWER = 8  # divisor of the number of split-K parts for a second try


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions that precede tile sizes."""

    made: tuple[Decision, ...]
    formed: Spec  # the equations after these decisions
    roles: Roles
    base: tuple[Decision, ...]  # decisions that hold for these equations with any tiles
    needs_loop: bool  # whether they pay only where a reduction is a loop
    # Whether matmul operands are prefetched although they are rounded after the load
    ahead: bool = False
    apart: frozenset[str] = frozenset()  # prepacked operands, made by launches of their own
    fewer: bool = False  # whether half as many threads are tried, too

    @property
    def cut(self) -> frozenset[str]:
        """The indices whose tiles the plan decides, including indices of packed copies that stay whole."""
        copies = tuple(f"{copy_of(d)}_" for d in self.made if d.verb == "pack")
        return frozenset(i for i in facts(self.formed).ranges if copies and i.startswith(copies))

    @property
    def parts(self) -> Mapping[str, int]:
        """The number of split-K parts of each index whose reduction is split."""
        return {str(d.option("over")): d.number("parts") for d in self.made if d.verb == "split_k"}


def wide_plans(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> list[Plan]:
    """Plans that keep the precisions of the spec. sizes: the free and the derived ones."""
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
    """Plans whose f32 matmuls run in a narrower dtype. wide: the other plans. rounded: see `ir.autoschedule`."""
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
    """A plan for two-pass reductions: decisions on the spec's own equations hold for their parts."""
    ends = dict.fromkeys((*launch_ends(spec), *stored_apart(spec, made)))
    return Plan(made, spec, roles(spec), (*ends, *units(spec, machine)), False)


def _plan(spec: Spec, machine: Machine, made: tuple[Decision, ...]) -> Plan:
    other = any(d.verb in REWRITES for d in made)
    formed = formulate(spec, Schedule(spec.name, made)) if other else spec
    base = in_range(spec, made, (*launch_ends(formed), *units(formed, machine)), machine)
    return Plan(made, formed, roles(formed), base, bool(made) and not other)


def _narrowed(plan: Plan, machine: Machine, rounded: Collection[str]) -> Plan | None:
    """The plan with its f32 matmuls in a narrower dtype: one pass, or split precision. None where
    it has no f32 matmul, or where the machine gains little."""
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
    """The plan with the split parts of 3xTF32 operands made by launches of their own, so that
    matmul loops only load. None where it has no such matmul."""
    triple = [d for d in plan.base if d.verb == "precision" and d.option("dtype") == TRIPLE]
    ends = [Decision("kernel", f"{d.subject}_{part}") for d in triple for part in ("al", "bl")]
    parts = frozenset(part for d in triple for part in names(d))
    return replace(plan, base=(*ends, *plan.base), apart=parts) if ends else None


def _lean(plan: Plan, spec: Spec) -> Plan:
    """The plan, marked to try fewer threads where filter taps are flattened, since each thread
    computes the addresses of its taps. Of eight pairs of such TF32 schedules on an H100, the one
    with 128 threads took 0.79 to 0.99 of the time with 256."""
    reduced = {i for e in spec.equations for i in e.reduced}
    merged = any(d.verb == "flatten" and d.subject in reduced for d in plan.made)
    return replace(plan, fewer=True) if merged else plan


def _read_once_rounded(plan: Plan) -> frozenset[str]:
    """The operands of matmuls that round them once, after the load. Their boxes may be copied in bulk."""
    single = {d.subject for d in plan.base if d.verb == "precision" and d.option("dtype") == NARROW}
    found = (contraction(plan.formed.equation(t)) for t in single)
    sides = (side for c in found if c is not None for side in (c.a, c.b))
    return frozenset(n.tensor for side in sides for n in side.walk() if isinstance(n, Read))


def _filter_apart(
    spec: Spec, machine: Machine, one: Apart, rounded: Collection[str]
) -> Plan | None:
    """A convolution in split precision whose loop splits the input and loads split parts of the
    filter. None where it is not in split precision."""
    plan = _narrowed(_plan(spec, machine, one.made), machine, rounded)
    if plan is None or not any(d.option("dtype") == TRIPLE for d in plan.base):
        return None
    return replace(plan, made=(*plan.made, *one.parts), ahead=True, fewer=True)


def stepwise_plan(spec: Spec, machine: Machine) -> Plan | None:
    """A plan with the matmuls of a recurrence's steps on the threads: few rows leave the matrix
    unit idle, and a step waits for its slowest block. None where there is no such matmul."""
    inside = {t for r in recurrences(spec) for t in r.targets if contraction(spec.equation(t))}
    outside = (d for d in units(spec, machine) if d.subject not in inside)
    base = (*launch_ends(spec), *outside)
    return Plan((), spec, roles(spec, inside), base, False) if inside else None


def short_plan(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Plan | None:
    """A plan with matmuls on the threads whose K is shorter than that of a matrix instruction,
    which would multiply padding. None where there is no such matmul, and for recurrences."""
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
    """A plan with packed copies that matmuls load unchanged, possibly with split-K."""
    copies = frozenset(copy_of(d) for d in made if d.verb == "pack")
    return replace(_plan(spec, machine, made), made=(*made, *parts), apart=copies)


def _of_rounded(
    spec: Spec, machine: Machine, made: tuple[Decision, ...], parts: tuple[Decision, ...]
) -> Plan:
    """The same for a convolution whose operands are already rounded."""
    operands = frozenset(t.name for t in spec.inputs if t.dtype == NARROW)
    return replace(_plan(spec, machine, made), made=(*made, *parts), apart=operands)


def _several(parts: tuple[Decision, ...]) -> Iterator[tuple[Decision, ...]]:
    """Yields no split-K, the given number of parts, and fewer parts. Split-K parts are reduced
    again, and prepacked operands may keep more blocks busy than the result has tiles."""
    yield ()
    for share in (1, FEWER) if len(parts) == 1 else ():
        (split,) = parts
        count = split.number("parts") // share
        if count > 1:
            yield (replace(split, options=(split.options[0], ("parts", count))),)


def _wide(spec: Spec, target: str) -> bool:
    """Whether both operands of a matmul are computed from f32 tensors only."""
    found = contraction(spec.equation(target))
    tensors = facts(spec).tensors
    return found is not None and all(
        tensors[n.tensor].dtype == "f32"
        for side in (found.a, found.b)
        for n in side.walk()
        if isinstance(n, Read)
    )


def _gains(machine: Machine, products: int) -> bool:
    """Whether so many narrow matmuls take at most half the time of one in f32."""
    unit = machine.units.get("matrix")
    if unit is None or NARROW not in unit.flops or "f32" not in unit.flops:
        return False
    return unit.flops[NARROW] >= 2 * products * unit.flops["f32"]
