"""Offering: what the edited texts of an answer come to, as a candidate, or all that is wrong."""

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
    """A child of the new texts of some files; any other name than SCHEDULE and VARIANT is the source's.

    Refused or KernelError where a text is at fault.
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
    """The child that an answer comes to with these values of its parameters."""
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
    """Refused with the faults of all texts, and of every line of a schedule."""
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
    """A schedule with one of its decisions alone, each where it stands."""
    for kept in range(1, len(lines)):
        yield [*lines[:1], *("" for _ in range(1, kept)), lines[kept]]


def _require_kept(context: Context, wanted: Schedule, child: Candidate) -> None:
    """KernelError at a decision of an answer that its child does not have, as it has no effect there.
    A decision that the parent had already goes without a word."""
    kept = {*context.parents[0].schedule.decisions, *schedule_of(child.schedule).decisions}
    lost = [decision for decision in wanted.decisions if decision not in kept]
    if lost:
        text = schedule_text(canonical(wanted))
        lowered(child.variant, text, context.machine, context.sizes)  # says why
        raise KernelError(f"`{lost[0]}` would change nothing", hint=f"drop {lost[0]}")
