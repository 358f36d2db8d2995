"""The first candidates: the autoschedule, and the plain schedule that it is compared with."""

from __future__ import annotations

from ir.autoschedule import autoschedule, plain
from ir.machine import Machine
from ir.print import spec_text
from ir.spec import Spec
from search.candidate import Candidate, Origin
from search.settings import Settings

FIRST = "first"  # the operators, so to say, of the two candidates without parents
PLAIN = "plain"


def first_candidates(settings: Settings, spec: Spec, machine: Machine) -> tuple[Candidate, ...]:
    """Both, or the autoschedule alone where it is plain itself."""
    first, second = (
        Candidate(
            formulation=spec_text(spec),
            schedule=str(schedule(spec, machine, settings.sizes)),
            target=settings.target,
            backend=settings.backend,
            origin=Origin(operator),
        )
        for operator, schedule in ((FIRST, autoschedule), (PLAIN, plain))
    )
    return (first,) if first.key == second.key else (first, second)
