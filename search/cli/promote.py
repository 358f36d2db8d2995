"""Promotion: makes a record of a run's winner, and chooses its destination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backends.emit import template_digest
from ir.digest import spec_digest, text_digest
from ir.errors import KernelError
from ir.guards import WITHIN
from ir.nest.nest import LoopNest
from ir.print import workload_text
from ir.workload import Workload
from search.cli.arguments import Arguments
from search.cli.files import require_folder
from search.cli.invocation import Invocation
from search.cli.suite import Problem
from search.core import difference
from search.core.candidate import Candidate
from search.core.evaluation import Evaluation
from search.core.lowered import nest_of, spec_of
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.core.shape_dispatch import ShapeDispatch
from search.core.workload import WeightedShape, widest
from search.record.record import (
    MEASURED,
    SCHEDULE,
    Digests,
    Record,
    Stored,
    Written,
    require_same_spec,
    write_record,
)
from search.record.specialization import Specialization, Texts, Tuned, digest_of, numbered

FOLDER = "kernels_generated"


def winner_source(problem: Problem, outcome: Outcome) -> str:
    """The source of the best candidate, as it was evaluated."""
    assert outcome.best is not None, "a run without a correct candidate has no source"
    return source(problem, outcome.best)


def winner_nest(problem: Problem, outcome: Outcome) -> LoopNest:
    """The nest of the best candidate, for a kernel without free sizes."""
    assert outcome.best is not None, "a run without a correct candidate launches nothing"
    return nest_of(outcome.best, problem.served[outcome.best.backend].machine, {})


def source(problem: Problem, candidate: Candidate, shapes: Sequence[WeightedShape] = ()) -> str:
    """A candidate's edited source, or the source that its backend emits.

    shapes: those that it fits; by default all.
    """
    if candidate.source is not None:
        return candidate.source
    served = problem.served[candidate.backend]
    sizes = widest(spec_of(candidate.variant), served.machine, shapes or problem.settings.shapes)
    return served.backend.emit(nest_of(candidate, served.machine, sizes), served.machine)


def lineage(outcome: Outcome, candidate: Candidate) -> tuple[str, ...]:
    """The differences from the first schedule to a candidate, a line each."""
    steps = outcome.graph.lineage(candidate.key)
    return tuple(
        line for before, after in zip(steps, steps[1:]) for line in difference.lines(before, after)
    )


def command(settings: Settings, own: bool = True, listed: Sequence[str] = ()) -> str:
    """The command that repeats a run with these settings. If a schedule was given, it starts from
    the record's schedule.

    own: whether that schedule is for the spec's own equations, as a start requires. listed: the
    target's backends, which are named if only some were in the race.
    """
    kept = f"{FOLDER}/{settings.kernel}/{_folder(settings, listed)}/{SCHEDULE}"
    options = {
        "target": settings.target,
        "kernel": settings.kernel,
        "schedule": kept if settings.schedule and own else None,
        "evaluations": settings.evaluations,
        "seconds": settings.seconds,
        "policy": settings.policy,
        "operators": ",".join(settings.operators) or None,
        "seed": settings.seed,
        "dispatch": settings.dispatch if settings.dispatch > 1 else None,
    }
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    given += [f"--model={name}" for name in settings.models]
    if tuple(settings.backends) != tuple(listed or settings.backends):
        given += [f"--backend={name}" for name in settings.backends]
    given[2:2] = [f"--shape={_worded(shape)}" for shape in settings.shapes]
    return " ".join(("bazel run //search:evolve --", *given))


def _narrowed(settings: Settings, listed: Sequence[str]) -> bool:
    """Whether only one backend searched, of several that the target lists."""
    return len(settings.backends) == 1 < len(listed)


def _folder(settings: Settings, listed: Sequence[str]) -> str:
    """The folder of a run's record, below its kernel's."""
    own = f".{settings.backends[0]}" if _narrowed(settings, listed) else ""
    return f"{settings.target}{own}"


def _worded(shape: WeightedShape) -> str:
    """A shape as text for the command."""
    sizes = ",".join(f"{name}={number}" for name, number in shape.sizes.items())
    return sizes if shape.weight == 1 else f"{sizes}@{shape.weight:g}"


def promote(problem: Problem, outcome: Outcome, checkout: Path, said: Mapping[str, str]) -> Written:
    """Writes the winner to the checkout if it is better than the record there.

    said: the backend's description of the machine that evaluated the candidates.
    """
    return write_record(checkout / FOLDER, winner(problem, outcome, said))


def winner(
    problem: Problem, outcome: Outcome, said: Mapping[str, str], made_by: str = ""
) -> Stored:
    """The winner as a record with its texts. made_by: the command; by default one that repeats the
    run in a checkout."""
    assert outcome.best is not None, "a run without a correct candidate has no record"
    assert outcome.evaluation is not None, "the winner has an evaluation"
    settings = problem.settings
    spec = spec_of(settings.spec)
    text = winner_source(problem, outcome)
    other = _other_equations(settings, outcome.best)
    served = problem.served[outcome.best.backend]
    name = f"kernel.{served.backend.manifest.extension}"
    record = Record(
        kernel=settings.kernel,
        target=settings.target,
        backend=served.name,
        source=name,
        command=made_by or command(settings, other is None, served.machine.backends),
        digests=Digests(
            spec=spec_digest(spec),
            schedule=text_digest(outcome.best.schedule),
            source=text_digest(text),
            templates=template_digest(served.name),
            toolchain=said.get("toolchain") or served.backend.manifest.toolchain,
            variant=digest_of(other),
            code=outcome.evaluation.code_sha256 or None,
        ),
        correct_by=outcome.evaluation.correct_by,
        time_kind=outcome.evaluation.time_kind,
        shape=dict(settings.sizes),
        us=outcome.dispatch.us if outcome.dispatch else outcome.evaluation.us,
        checked=_checked(outcome.evaluation),
        reduced=tuple(dict(e.sizes) for e in outcome.evaluation.errors if e.reduced),
        first_us=outcome.first_us,
        plain_us=outcome.plain_us,
        roofline_us=outcome.roofline_us,
        evaluations=outcome.evaluations,
        seed=settings.seed,
        secret=settings.secret,
        lineage=lineage(outcome, outcome.best),
        freely_edited=outcome.best.source is not None,
        left_to_torch=settings.left_to_torch,
        rounded=settings.rounded,
        narrowed=_narrowed(settings, served.machine.backends),
        **_measured_on(outcome.evaluation, said),
        **_shared(problem, outcome, name),
    )
    workload = workload_text(Workload(spec, problem.tune, settings.checks))
    stored = Stored(record, workload, outcome.best.schedule, text, other)
    if outcome.dispatch is not None:
        stored = replace(stored, specializations=dispatch_texts(problem, outcome.dispatch)[1:])
    return stored


def winner_texts(problem: Problem, outcome: Outcome) -> tuple[Texts, ...]:
    """The texts of the winner, followed by those of the kernels that share its shapes; empty if no
    candidate is correct."""
    best = outcome.best
    if best is None:
        return ()
    other = _other_equations(problem.settings, best)
    first = Texts(best.schedule, winner_source(problem, outcome), other)
    shared = dispatch_texts(problem, outcome.dispatch)[1:] if outcome.dispatch else ()
    return (first, *shared)


def _shared(problem: Problem, outcome: Outcome, name: str) -> dict[str, Any]:
    """The fields of a record about several shapes, and about the kernels that share them.

    name: source file of the first kernel.
    """
    workload = tuple(
        Tuned(dict(row.shape.sizes), row.shape.weight, row.us, row.kernel)
        for row in outcome.by_shape()
        if row.us is not None
    )
    found = outcome.dispatch
    if found is None or len(found.kernels) == 1:
        return {"workload": workload}
    others = [kernel.candidate for kernel in found.kernels[1:]]
    specializations = tuple(
        Specialization(
            source=numbered(name, number),
            schedule_digest=text_digest(text.schedule),
            source_digest=text_digest(text.source),
            freely_edited=other.source is not None,
            lineage=lineage(outcome, other),
            variant_digest=digest_of(text.variant),
        )
        for number, (other, text) in enumerate(
            zip(others, dispatch_texts(problem, found)[1:], strict=True), 1
        )
    )
    return {
        "workload": workload,
        "single_us": found.single_us,
        "guards": found.guards,
        "within": WITHIN,
        "specializations": specializations,
    }


def dispatch_texts(problem: Problem, found: ShapeDispatch) -> tuple[Texts, ...]:
    """The texts of the kernels of a dispatch; the fallback is the first."""
    made = []
    for kernel in found.kernels:
        one = kernel.candidate
        fitting = [s for s, us in zip(found.shapes, kernel.times, strict=True) if us is not None]
        text = source(problem, one, fitting)
        made.append(Texts(one.schedule, text, _other_equations(problem.settings, one)))
    return tuple(made)


def _other_equations(settings: Settings, candidate: Candidate) -> str | None:
    """The equations of a candidate; None if they are the spec's own."""
    own = spec_of(candidate.variant) == spec_of(settings.spec)
    return None if own else candidate.variant


def _checked(evaluation: Evaluation) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(e.sizes) for e in evaluation.errors)


def _measured_on(evaluation: Evaluation, said: Mapping[str, str]) -> dict[str, Any]:
    """The device and its clocks, if the time was measured there."""
    if evaluation.time_kind != MEASURED:
        return {}
    return {name: said.get(name) for name in ("device", "clocks")}


OUT = "--out"
USUAL = "speciate_out"  # folder outside of a checkout


@dataclass(frozen=True, slots=True)
class Destination:
    """The destinations of winners."""

    checkout: Path | None = None  # its kernels_generated/ gets winners; None: it does not
    all: bool = False  # whether it gets every winner, not only those of the library's kernels
    out: Path | None = None  # another folder that gets winners; None: there is none
    # whether the user named that folder; otherwise a faster winner there is kept
    named: bool = False

    def promotes(self, problem: Problem) -> bool:
        """Whether a winner goes to the checkout. By default: a kernel of the library, for a target
        of the project that is not for tests."""
        usual = problem.library and problem.ours and not problem.for_tests
        return self.checkout is not None and (self.all or usual)

    def writes(self, problem: Problem) -> bool:
        """Whether a winner goes to the folder."""
        return self.out is not None and (self.named or not problem.for_tests)


def destination(asked: Arguments, around: Invocation, problems: Sequence[Problem]) -> Destination:
    """The destinations of winners. Raises KernelError before a search for an impossible one."""
    if asked.promote:
        _require_checkout(around, problems)
    # A run without a store is a trial, so nothing is promoted unless the user asks for it.
    wanted = asked.promote is True or asked.promote is None and not asked.no_store
    checkout = around.checkout if wanted else None
    named = asked.out is not None
    out = around.path(asked.out) if asked.out is not None else None
    silent = asked.promote is None and asked.model_new is None
    if out is None and around.checkout is None and silent:
        out = around.folder / USUAL
    found = Destination(checkout, asked.promote is True, out, named)
    written = [problem for problem in problems if found.writes(problem)]
    if out is not None and written:
        _require_folder(out, written, named and not asked.overwrite)
    return found


def _require_checkout(around: Invocation, problems: Sequence[Problem]) -> None:
    if around.checkout is None:
        raise KernelError(
            "there is no checkout to write to",
            where="--promote",
            hint="run it by `bazel run` or inside a checkout; --out=DIR needs none",
        )
    external = [p.machine.name for p in problems if not p.ours]
    if external:
        raise KernelError(
            f"a record for target `{external[0]}` could not be tested later, as its file is not "
            "the project's",
            where="--promote",
            hint="put the file into backends/targets/ and name the target; --out=DIR needs neither",
        )


def _require_folder(out: Path, problems: Sequence[Problem], new: bool) -> None:
    """Raises KernelError if winners cannot be written. new: whether existing records must not be
    replaced."""
    for problem in problems:
        settings = problem.settings
        folder = out / settings.kernel / _folder(settings, problem.machine.backends)
        require_folder(OUT, folder)
        if new and folder.exists():
            raise KernelError(
                f"`{folder}` already exists",
                where=OUT,
                hint="name another folder, or give --overwrite to replace it",
            )
        require_same_spec(folder, settings.spec)
