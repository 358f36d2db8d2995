"""Range rules: which matmul operands may be rounded to a float of smaller range than f32.

A schedule may round an operand of the user's equations, because plain arithmetic in the formats of
the spec rounds it, too. A decision that takes a factor out of a sum, or changes the order of
summation, makes new operands, which can be larger by any factor. These may be rounded only if
bounds prove that the narrow format holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.contraction import contraction
from ir.errors import KernelError
from ir.machine import Machine
from ir.print import expression_text
from ir.schedule import Decision, Schedule
from ir.spec import Equation, Spec
from ir.variant.associate import again, associate
from ir.variant.atomic import decided
from ir.variant.bounds import LARGEST, held_interval
from ir.variant.derived import TRIPLE
from ir.variant.expansion import expanded
from ir.variant.precision import NARROW, narrowest
from ir.variant.variant import depends, freed, hoist

OF_OPERANDS = ("hoist", "associate", "online", "precision")  # verbs that change or round operands


class OutOfRange(KernelError):
    """Operands would be rounded to a narrow float whose range may not hold them."""


def require_range(
    spec: Spec, schedule: Schedule, machine: Machine, given: Spec | None = None
) -> None:
    """Raises OutOfRange if operands are rounded to a narrow float whose range may not hold them.

    given: the user's equations, if `spec` is a rewrite of them. Only their values may be rounded
        without proof.
    """
    narrow = [d for d in schedule.of("precision") if d.option("dtype") in LARGEST]
    if not narrow:
        return
    formed, changed = _changed(spec, schedule)
    for decision in narrow:
        name = decision.subject
        new = given is not None and not _alike(spec, given, name, {})
        if (name in changed or new) and (e := _equation(formed, name)):
            _require_held(formed, e, decision, changed.get(name), machine)


def in_range(
    spec: Spec, made: tuple[Decision, ...], base: tuple[Decision, ...], machine: Machine
) -> tuple[Decision, ...]:
    """Makes the decisions of `base` legal.

    A rounding that can overflow becomes tf32 if the matrix unit takes it, and is dropped otherwise.

    made: the other decisions of the schedule.
    """
    found: list[Decision] = []
    for d in base:
        try:
            require_range(spec, Schedule(spec.name, (*made, d)), machine)
            found.append(d)
        except OutOfRange:
            wide = replace(d, options=(("dtype", NARROW),))
            found += [wide] if machine.has_matrix(NARROW) else []
    return tuple(found)


def _changed(spec: Spec, schedule: Schedule) -> tuple[Spec, Mapping[str, Decision]]:
    """The rewritten equations, and the sums with operands that the user's equations lack.

    Each sum comes with the decision that changed it.
    """
    changed: dict[str, Decision] = {}
    for d in schedule.of("hoist"):
        changed[freed(spec, d)[0].target] = d
        spec = hoist(spec, d)
    spec = expanded(spec, decided(spec, schedule))
    for d in schedule.of("associate"):
        spec, name = associate(spec, d), again(d.subject)
        changed |= {e.target: d for e in spec.equations if name in (e.target, *e.sources())}
    for d in schedule.of("online"):
        # Under a running maximum exp(f - mx) uses the maximum so far: these operands are new, too.
        rescaled = [t for t in _beside(schedule, d.subject) if depends(spec, t, d.subject)]
        changed |= {t: d for t in rescaled if t not in changed}
    return spec, changed


def _beside(schedule: Schedule, name: str) -> set[str]:
    """The other reductions that share a loop with `name`."""
    pairs = [
        {d.subject, str(d.option("into"))} for verb in ("fuse", "online") for d in schedule.of(verb)
    ]
    names, before = {name}, 0
    while before != (before := len(names)):
        names.update(*(pair for pair in pairs if pair & names))
    return names - {name}


def _require_held(
    spec: Spec, e: Equation, decision: Decision, by: Decision | None, machine: Machine
) -> None:
    """Raises OutOfRange if the narrow float may not hold an operand of a contraction."""
    found, dtype = contraction(e), str(decision.option("dtype"))
    for side in (found.a, found.b) if found else ():
        low, high = held_interval(spec, side)
        if -LARGEST[dtype] <= low and high <= LARGEST[dtype]:
            continue
        why = f"`{by}` changes its operands" if by else "the given equations have no such operand"
        hint = f"drop {by}, or {decision}" if by else f"drop {decision}"
        raise OutOfRange(
            f"`{decision.subject}` may not round `{expression_text(side)}` to {dtype}: {why}, and "
            f"nothing keeps this one within {LARGEST[dtype]:g}, the largest {dtype}",
            place=decision.place,
            allowed=", ".join(_wide(spec, machine)),
            hint=hint,
        )


def _wide(spec: Spec, machine: Machine) -> list[str]:
    """The operand dtypes with the range of f32."""
    wide = [d for d in narrowest(spec) if d not in LARGEST]
    wide += [NARROW, TRIPLE] if machine.has_matrix(NARROW) else []
    return [*wide, "f32"]


def _alike(spec: Spec, given: Spec, name: str, known: dict[str, bool]) -> bool:
    """Whether two specs compute a tensor by the same equations from the same inputs.

    known: results so far. A tensor that is still being compared counts as equal, which ends the
        recursion in recurrences.
    """
    if name not in known:
        known[name] = True
        one, other = _equation(spec, name), _equation(given, name)
        known[name] = one == other and all(
            _alike(spec, given, source, known) for source in (one.sources() if one else ())
        )
    return known[name]


def _equation(spec: Spec, name: str) -> Equation | None:
    return next((e for e in spec.equations if e.target == name), None)
