"""Collects the contents of a report from a run's outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir.machine import Machine
from ir.print import signature
from search.core import difference, quantity
from search.core.by_backend import by_backend
from search.core.candidate import Candidate
from search.core.contributions import contributions
from search.core.evaluation import Evaluation, ShapeError
from search.core.held_out import HeldOut, held_out_words
from search.core.lowered import spec_of
from search.core.measures import named
from search.core.model_use import PromptUse
from search.core.outcome import AtShape, Outcome
from search.core.shape_dispatch import guard_lines
from search.core.workload import words
from search.report.page import (
    ArchiveAxis,
    ArchiveCell,
    ArchiveMaps,
    BackendRow,
    Engine,
    EvaluationRow,
    HeldOutRow,
    LineageStep,
    OperatorRow,
    PromptRow,
    RunReport,
    ShapeRow,
    Text,
)


def result(
    outcome: Outcome,
    machine: Machine,
    source: Text | None,
    facts: Mapping[str, str],
    others: tuple[Text, ...] = (),
    held_out: Sequence[HeldOut] = (),
) -> RunReport:
    """The contents for a run.

    source: of the winner, as text. facts: further facts from the caller. others: texts of the
    kernels that share its shapes. held_out: results of these at held-out shapes.
    """
    settings = outcome.settings
    best = outcome.evaluation
    return RunReport(
        run=outcome.run,
        kernel=settings.kernel,
        title=_title(settings.spec),
        target=settings.target,
        backend=outcome.backend,
        shape=words(settings.shapes),
        correct_by=best.correct_by if best else "",
        time_kind=best.time_kind if best else "",
        first_us=outcome.first_us,
        plain_us=outcome.plain_us,
        best_us=best.us if best else None,
        roofline_us=outcome.roofline_us,
        stopped_because=outcome.stopped_because,
        trials=_trials(outcome),
        lineage=_lineage(outcome),
        engines=_engines(outcome),
        archive=_archive(outcome),
        texts=(*_texts(outcome, source), *others),
        facts={**_facts(outcome, machine), **facts},
        shapes=tuple(_shape(row) for row in outcome.by_shape()),
        guards=guard_lines(outcome.dispatch),
        backends=_backends(outcome),
        held_out=tuple(_held_out(row) for row in held_out),
        held_out_words=held_out_words(held_out),
        operators=tuple(
            OperatorRow(c.operator, c.children, c.correct, c.best, c.gain)
            for c in contributions(outcome.graph, outcome.outcomes)
        ),
        models=str(outcome.models or ""),
        prompts=_prompts(outcome.models.prompts) if outcome.models else (),
    )


def _prompts(versions: Sequence[PromptUse]) -> tuple[PromptRow, ...]:
    """Versions by number; the first is the one that every search starts with."""
    numbers = {version.digest: number for number, version in enumerate(versions, 1)}
    return tuple(
        PromptRow(
            name=f"{numbers[version.digest]} ({version.digest})",
            made=f"{version.move} {numbers[version.parent]}" if version.parent else "the first",
            children=version.children,
            failed=version.failed,
            gain=version.gain,
        )
        for version in versions
    )


def _backends(outcome: Outcome) -> tuple[BackendRow, ...]:
    """The result of each backend; empty if there is only one."""
    if len(outcome.settings.backends) == 1:
        return ()
    return tuple(
        BackendRow(
            name=each.backend,
            evaluated=each.evaluated,
            correct=each.correct,
            failed=each.failed,
            first_us=each.first_us,
            best_us=each.best_us,
            schedule="; ".join(each.edits),
            winner=outcome.best is not None and each.best is outcome.best,
        )
        for each in by_backend(outcome)
    )


def _backend_words(outcome: Outcome) -> str:
    names = outcome.settings.backends
    if len(names) == 1:
        return names[0]
    return f"{outcome.backend}, of {', '.join(names)}"


def _shape(row: AtShape) -> ShapeRow:
    sizes, times = quantity.shape(row.shape.sizes), (row.first_us, row.single_us, row.us)
    return ShapeRow(sizes, row.shape.weight, *times, row.kernel, row.roofline_us)


def _held_out(row: HeldOut) -> HeldOutRow:
    times = (row.us, row.single_us, row.first_us)
    return HeldOutRow(quantity.shape(row.sizes), row.kernel, *times, row.said)


def _title(spec: str) -> str:
    """The first line of a spec's docstring; its signature if it has none."""
    parsed = spec_of(spec)
    doc = parsed.doc.strip()
    return doc.splitlines()[0] if doc else signature(parsed)


def _numbers(outcome: Outcome) -> dict[str, int]:
    """The number of each candidate, in the order of outcomes."""
    return {key: number for number, key in enumerate(outcome.outcomes)}


def _trials(outcome: Outcome) -> tuple[EvaluationRow, ...]:
    found = []
    for number, (key, told) in enumerate(outcome.outcomes.items()):
        operator = outcome.graph.node(key).origin.operator
        if isinstance(told, Evaluation) or told.slow:
            found.append(EvaluationRow(number, operator, told.us))
        else:
            found.append(EvaluationRow(number, operator, None, told.stage, told.reason))
    return tuple(found)


def _lineage(outcome: Outcome) -> tuple[LineageStep, ...]:
    if outcome.best is None:
        return ()
    numbers = _numbers(outcome)
    steps: list[LineageStep] = []
    before: Candidate | None = None
    for candidate in outcome.graph.lineage(outcome.best.key):
        told = outcome.outcomes.get(candidate.key)
        others = candidate.origin.parents[1:]
        steps.append(
            LineageStep(
                number=numbers[candidate.key],
                operator=candidate.origin.operator,
                us=told.us if isinstance(told, Evaluation) else None,
                edits=difference.lines(before, candidate) if before else (),
                others=tuple(numbers[key] for key in others if key in numbers),
            )
        )
        before = candidate
    return tuple(steps)


def _engines(outcome: Outcome) -> tuple[Engine, ...]:
    best, first = outcome.evaluation, outcome.outcomes.get(outcome.first.key)
    if best is None:
        return ()
    before = first.engines if isinstance(first, Evaluation) else {}
    names = dict.fromkeys((*before, *best.engines))
    return tuple(Engine(n, before.get(n, 0.0), best.engines.get(n, 0.0)) for n in names)


def _archive(outcome: Outcome) -> ArchiveMaps:
    numbers = _numbers(outcome)
    best = outcome.best.key if outcome.best else ""
    axes = tuple(ArchiveAxis(m.title, m.labels) for m in named(outcome.settings.measures))
    cells = (
        ArchiveCell(e.cell, e.evaluation.us, numbers[e.candidate.key], e.candidate.key == best)
        for e in outcome.archive
    )
    return ArchiveMaps(axes, tuple(cells))


def _texts(outcome: Outcome, source: Text | None) -> tuple[Text, ...]:
    if outcome.best is None:
        return ()
    first = set(outcome.first.schedule.splitlines())
    lines = outcome.best.schedule.splitlines()
    new = frozenset(n for n, line in enumerate(lines) if line not in first)
    words = "Schedule (marked: what the first schedule lacks)" if new else "Schedule"
    schedule = Text(words, outcome.best.schedule, new)
    spec = Text("The spec it is held to", outcome.settings.spec)
    return tuple(t for t in (schedule, _equations(outcome), source, spec) if t)


def _equations(outcome: Outcome) -> Text | None:
    """The equations of the winner; None if they are the spec's own."""
    spec, made = outcome.settings.spec, outcome.best.variant if outcome.best else ""
    if made in ("", spec):
        return None
    own = set(spec.splitlines())
    lines = made.splitlines()
    new = frozenset(n for n, line in enumerate(lines) if line not in own)
    return Text("Equations (marked: what the spec's lack)", made, new)


def _facts(outcome: Outcome, machine: Machine) -> dict[str, str]:
    settings, best = outcome.settings, outcome.evaluation
    facts = {
        "run": outcome.run,
        "target": f"{machine.name}: {machine.title}",
        "backend": _backend_words(outcome),
        "policy": f"{settings.policy}, {settings.batch} a generation",
        "seed": str(settings.seed),
        "took": quantity.duration(outcome.seconds),
    }
    if best is None:
        return facts
    facts["correct by"] = f"{best.correct_by}, against float64 at {len(best.errors)} shapes"
    facts["checked at"] = "; ".join(_compared_at(e) for e in best.errors)
    worst = max(best.errors, key=lambda e: e.rel_err, default=None)
    if worst:
        facts["largest error"] = (
            f"{worst.rel_err:.2g} of the norm; plain arithmetic of the same precision has "
            f"{worst.reference_rel_err:.2g}"
        )
    facts["time"] = f"{best.time_kind}, at {words(settings.shapes)}"
    return facts


def _compared_at(error: ShapeError) -> str:
    """The sizes of a check, with a note if they replace larger ones."""
    stands = " (the tiling of the tuning size)" if error.reduced else ""
    return f"{quantity.shape(error.sizes)}{stands}"
