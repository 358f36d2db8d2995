"""Offering: makes a candidate from the edited texts of an answer, or reports all their faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ir.errors import KernelError
from ir.lower.verb_table import canonical
from ir.lower.verbs import require_legal
from ir.parse.parse import parse_schedule, parse_spec
from ir.schedule import Schedule
from search.core.candidate import Candidate
from search.core.lowered import lowered, schedule_of, schedule_text
from search.core.trial import Template, Trial, Values
from search.loop.context import Context, GaveUp
from search.prompt.answer import Refused
from search.prompt.brief import SCHEDULE, VARIANT


def offered(
    context: Context, files: Mapping[str, str], operator: str, note: str
) -> Candidate | GaveUp:
    """A child with new texts of some files. A name other than SCHEDULE and VARIANT is that of the
    source.

    Raises Refused or KernelError for a faulty text.
    """
    source = next((text for name, text in files.items() if name not in (SCHEDULE, VARIANT)), None)
    if source is not None:
        return context.offer_source(source, operator, note)
    _require_parsed(files)
    schedule = parse_schedule(files[SCHEDULE]) if SCHEDULE in files else None
    if VARIANT in files:
        variant = parse_spec(files[VARIANT])
        child = context.offer_variant(variant, operator, note, schedule)
    else:
        assert schedule is not None, "an answer that edits nothing was refused"
        require_legal(context.parents[0].variant, schedule, context.machine)
        child = context.offer(schedule, operator, note)
    if schedule is not None and isinstance(child, Candidate):
        _require_kept(context, schedule, child)
    return child


def combination(
    context: Context, template: Template, values: Values, operator: str, answer: int
) -> Candidate | GaveUp:
    """The child of an answer for these values of its parameters."""
    trial = Trial(answer, values)
    note = f"{template.why.rstrip('.')} ({trial})" if template.why else str(trial)
    try:
        found = offered(context, template.filled(values), operator, note)
    except (Refused, KernelError) as error:
        return GaveUp(str(error))
    if isinstance(found, GaveUp):
        return found
    return replace(found, origin=replace(found.origin, trial=trial))


def _require_parsed(files: Mapping[str, str]) -> None:
    """Raises Refused with the faults of all texts, including every faulty line of a schedule."""
    faults: dict[str, None] = {}
    for name, parse in ((VARIANT, parse_spec), (SCHEDULE, parse_schedule)):
        if name not in files:
            continue
        lines = files[name].split("\n")
        for text in (lines, *(_single(lines) if name == SCHEDULE else ())):
            try:
                parse("\n".join(text))
            except KernelError as error:
                faults[f"{name}: {error}"] = None
    if faults:
        raise Refused("\n".join(faults))


def _single(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yields the schedule with one decision at a time, each on its own line number."""
    for kept in range(1, len(lines)):
        yield [*lines[:1], *("" for _ in range(1, kept)), lines[kept]]


def _require_kept(context: Context, wanted: Schedule, child: Candidate) -> None:
    """Raises KernelError for a decision of an answer that has no effect and is therefore not in the
    child. Decisions of the parent are exempt."""
    kept = {*context.parents[0].schedule.decisions, *schedule_of(child.schedule).decisions}
    lost = [decision for decision in wanted.decisions if decision not in kept]
    if lost:
        text = schedule_text(canonical(wanted))
        # raises with the reason, if it does not lower
        lowered(child.variant, text, context.machine, context.sizes)
        raise KernelError(f"`{lost[0]}` would change nothing", hint=f"drop {lost[0]}")
