"""The first candidates: autoschedules, the plain one, the user's, and elites of other searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, zip_longest

from ir.autoschedule.autoschedule import alternatives, plain
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.machine import Machine
from ir.schedule import Schedule
from ir.spec import Spec
from ir.workload import Sizes
from search.core.candidate import Candidate, Origin
from search.core.lowered import fits_at, schedule_of, schedule_text, spec_of, variant_text
from search.core.quantity import shape
from search.core.settings import Settings
from search.warm_start.adapt import adapted
from search.warm_start.autoscheduled import scheduled

FIRST = "first"  # pseudo operators of the candidates without parents
PLAIN = "plain"
ALTERNATIVE = "alternative"  # a seed schedule with another algorithm than the first
GIVEN = "given"
ELSEWHERE = "elsewhere"  # an autoschedule for another shape of the workload
BROUGHT = "brought"

Scheduler = Callable[[Spec, Machine, Sizes], Schedule]


def first_candidates(
    settings: Settings, spec: Spec, machines: Mapping[str, Machine]
) -> tuple[Candidate, ...]:
    """The autoschedule, then all distinct other seeds; several backends alternate.

    Seeds that do not lower are left out; raises KernelError if none is left. For a workload, the
    first is the autoschedule at the heaviest shape whose kernel fits; those of the other shapes
    come last.

    machines: the target as each backend describes it, by backend.
    """
    each = [_first_of(name, settings, spec, machines[name]) for name in settings.backends]
    found = tuple(c for c in chain.from_iterable(zip_longest(*each)) if c is not None)
    if not found:
        scheduled(spec, machines[settings.backends[0]], settings.sizes)  # raises with the reason
    return found


def require_lowered(spec: Spec, machine: Machine, sizes: Sizes) -> None:
    """Raises KernelError if neither the plain schedule nor the autoschedule lowers."""
    try:
        lower(spec, plain(spec, machine, sizes), machine, sizes)
    except KernelError as error:
        if not _text(scheduled, spec, machine, sizes):
            raise error from None


def _first_of(
    backend: str, settings: Settings, spec: Spec, machine: Machine
) -> tuple[Candidate, ...]:
    variant = variant_text(spec)
    sizes, *others = _autoscheduled_at(settings, spec, machine)
    given = settings.schedule
    if (
        len(settings.backends) > 1
        and given
        and not fits_at(variant, given, machine, settings.sizes)
    ):
        given = schedule_text(adapted(spec, schedule_of(given), machine, settings.sizes))
    seed = settings.seed_schedule if backend == settings.backends[0] else ""
    untiled = "" if settings.seed_schedule else _text(plain, spec, machine, settings.sizes)
    by_rule = _text(scheduled, spec, machine, sizes)
    schedules = [
        (FIRST, "", seed),
        (ALTERNATIVE if seed else FIRST, "", by_rule),
        (PLAIN, "", untiled),
        (GIVEN, "", given),
    ]
    if by_rule:
        for another in alternatives(spec, machine, sizes):
            schedules.append((ALTERNATIVE, "", schedule_text(another)))
    for other in others:
        at = f"at {shape(other)}"
        schedules.append((ELSEWHERE, at, _text(scheduled, spec, machine, other)))
    made = (
        Candidate(
            variant=variant,
            schedule=schedule,
            target=settings.target,
            backend=backend,
            origin=Origin(operator, note=note),
        )
        for operator, note, schedule in schedules
        if schedule
    )
    found: dict[str, Candidate] = {}
    for c in (*made, *_brought(backend, settings, spec, machine)):
        found.setdefault(c.key, c)
    return tuple(found.values())


def _text(made: Scheduler, spec: Spec, machine: Machine, sizes: Sizes) -> str:
    """The text of a schedule; empty if it does not lower, because others may."""
    try:
        return schedule_text(made(spec, machine, sizes))
    except KernelError:
        return ""


def _autoscheduled_at(settings: Settings, spec: Spec, machine: Machine) -> list[Sizes]:
    """The sizes of the workload: first those whose autoschedule fits all shapes, then by weight."""
    shapes = sorted(settings.shapes, key=lambda s: -s.weight)
    if len(shapes) == 1:
        return [settings.sizes]

    variant = variant_text(spec)

    def lacks(sizes: Sizes) -> bool:
        schedule = _text(scheduled, spec, machine, sizes)
        return not schedule or not all(
            fits_at(variant, schedule, machine, each.sizes) for each in shapes
        )

    return sorted((s.sizes for s in shapes), key=lacks)


def _brought(backend: str, settings: Settings, spec: Spec, machine: Machine) -> Iterator[Candidate]:
    """Results of other searches, as far as they lower here. An edited source is kept only for the
    same target and backend."""
    for found in settings.transferred:
        try:
            variant = spec_of(found.variant)
            schedule = adapted(variant, schedule_of(found.schedule), machine, settings.sizes)
        except KernelError:
            continue  # by an earlier version, or of another spec with the same name
        if (variant.inputs, variant.outputs) != (spec.inputs, spec.outputs):
            continue
        same = (found.target, found.backend) == (settings.target, backend)
        yield Candidate(
            variant=variant_text(variant),
            schedule=schedule_text(schedule),
            target=settings.target,
            backend=backend,
            source=found.source if same and found.edited else None,
            origin=Origin(BROUGHT, note=f"found for {found.target} by {found.run or 'a record'}"),
        )
