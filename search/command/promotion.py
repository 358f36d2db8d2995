"""Promotion: the winner of a run as a record under `kernels_generated/`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backends.emit import template_digest
from ir.digest import spec_digest, text_digest
from ir.lower import lower
from ir.machine import Machine
from ir.parse import parse_schedule, parse_spec
from ir.print import workload_text
from ir.workload import Workload
from search import difference
from search.command.problem import Problem
from search.evaluation import Evaluation
from search.outcome import Outcome
from search.record import MEASURED, SCHEDULE, Digests, Record, Stored, Written, write_record
from search.settings import Settings

FOLDER = "kernels_generated"


def winner_source(problem: Problem, outcome: Outcome) -> str:
    """The source of the best candidate, as it was evaluated."""
    best = outcome.best
    assert best is not None, "a run without a correct candidate has no source"
    if best.source is not None:
        return best.source
    return source(problem, best.formulation, best.schedule)


def source(problem: Problem, formulation: str, schedule: str) -> str:
    """What the backend emits for a schedule."""
    machine: Machine = problem.machine
    sizes = problem.settings.sizes
    nest = lower(parse_spec(formulation), parse_schedule(schedule), machine, sizes)
    return problem.backend.emit(nest, machine)


def lineage(outcome: Outcome) -> tuple[str, ...]:
    """One-line differences from the first schedule to the winner, step by step."""
    assert outcome.best is not None, "a run without a correct candidate has no winner"
    steps = outcome.graph.lineage(outcome.best.key)
    return tuple(
        line for before, after in zip(steps, steps[1:]) for line in difference.lines(before, after)
    )


def command(settings: Settings) -> str:
    """The command that gives a run with these settings again; where a schedule was given, one
    that starts from the record's own."""
    kept = f"{FOLDER}/{settings.kernel}/{settings.target}/{SCHEDULE}"
    shape = ",".join(f"{name}={number}" for name, number in settings.sizes.items())
    options = {
        "target": settings.target,
        "kernel": settings.kernel,
        "shape": shape,
        "schedule": kept if settings.schedule else None,
        "evaluations": settings.evaluations,
        "seconds": settings.seconds,
        "policy": settings.policy,
        "seed": settings.seed,
    }
    given = (f"--{name}={value}" for name, value in options.items() if value is not None)
    return " ".join(("bazel run //search:evolve --", *given))


def promote(
    problem: Problem, outcome: Outcome, checkout: Path, said: Mapping[str, str]
) -> Written:
    """Keeps the winner in the checkout, if it is better than what is kept there.

    said: what the backend says of the machine that the candidates were evaluated on.
    """
    assert outcome.best is not None, "a run without a correct candidate has no record"
    assert outcome.evaluation is not None, "the winner has an evaluation"
    settings = problem.settings
    spec = parse_spec(settings.spec)
    text = winner_source(problem, outcome)
    name = f"kernel.{problem.backend.manifest.extension}"
    record = Record(
        kernel=settings.kernel,
        target=settings.target,
        backend=settings.backend,
        source=name,
        command=command(settings),
        digests=Digests(
            spec=spec_digest(spec),
            schedule=text_digest(outcome.best.schedule),
            source=text_digest(text),
            templates=template_digest(settings.backend),
            toolchain=said.get("toolchain") or problem.backend.manifest.toolchain,
        ),
        correct_by=outcome.evaluation.correct_by,
        time_kind=outcome.evaluation.time_kind,
        shape=dict(settings.sizes),
        us=outcome.evaluation.us,
        checked=_checked(outcome.evaluation),
        first_us=outcome.first_us,
        plain_us=outcome.plain_us,
        roofline_us=outcome.roofline_us,
        evaluations=outcome.evaluations,
        seed=settings.seed,
        lineage=lineage(outcome),
        freely_edited=outcome.best.source is not None,
        **_measured_on(outcome.evaluation, said),
    )
    workload = workload_text(Workload(spec, problem.tune, settings.checks))
    stored = Stored(record, workload, outcome.best.schedule, text)
    return write_record(checkout / FOLDER, stored)


def _checked(evaluation: Evaluation) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(e.sizes) for e in evaluation.errors)


def _measured_on(evaluation: Evaluation, said: Mapping[str, str]) -> dict[str, str | None]:
    """The device and its clocks, where the time is theirs."""
    if evaluation.time_kind != MEASURED:
        return {}
    return {name: said.get(name) for name in ("device", "clocks")}
