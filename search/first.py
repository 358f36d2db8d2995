"""The first candidates: the autoschedule, the plain schedule, and one that the user gave."""

from __future__ import annotations

from ir.autoschedule import autoschedule, plain
from ir.machine import Machine
from ir.print import spec_text
from ir.spec import Spec
from search.candidate import Candidate, Origin
from search.settings import Settings

FIRST = "first"  # the operators, so to say, of the candidates without parents
PLAIN = "plain"
GIVEN = "given"


def first_candidates(settings: Settings, spec: Spec, machine: Machine) -> tuple[Candidate, ...]:
    """The autoschedule, then the others that are not the same."""
    schedules = {
        FIRST: str(autoschedule(spec, machine, settings.sizes)),
        PLAIN: str(plain(spec, machine, settings.sizes)),
        GIVEN: settings.schedule,
    }
    made = (
        Candidate(
            formulation=spec_text(spec),
            schedule=schedule,
            target=settings.target,
            backend=settings.backend,
            origin=Origin(operator),
        )
        for operator, schedule in schedules.items()
        if schedule
    )
    return tuple({c.key: c for c in reversed(list(made))}.values())[::-1]
