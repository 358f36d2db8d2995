"""Legal edits: all single changes of a schedule that are legal, with their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.lower.lower import settled
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import Spec
from ir.workload import Sizes

MOST_REASONS = 6  # reasons for illegal edits


@dataclass(frozen=True, slots=True)
class LegalEdits:
    """The single changes of one schedule."""

    lines: tuple[str, ...]  # one for each decision, with its possible values
    refused: tuple[str, ...]  # illegal changes, each reason once


def legal_edits(
    spec: Spec, schedule: Schedule, machine: Machine, every: Sequence[Sizes]
) -> LegalEdits:
    """The edits after which a schedule lowers at all of some sizes. every: at least one."""
    changes: dict[tuple[str, str], list[str]] = {}
    refused: dict[tuple[str, str], str] = {}
    for edit in neighbours(spec, schedule, machine, every[0]):
        try:
            changed = edit.apply(schedule)
            for sizes in every:
                kept = settled(spec, changed, machine, sizes).schedule
                if edit.new is not None and edit.new not in kept.decisions:
                    raise KernelError(f"`{edit.new}` would change nothing")
        except KernelError as error:
            key = edit.decision.verb, edit.decision.subject
            refused.setdefault(key, f"`{edit}`: {error.what}")
            continue
        key = edit.decision.verb, edit.decision.subject
        changes.setdefault(key, []).append(_change(edit))
    lines = (_line(schedule.find(*key), key, told) for key, told in changes.items())
    return LegalEdits(tuple(lines), tuple(refused.values())[:MOST_REASONS])


def _change(edit: Edit) -> str:
    """A change of a decision. Its line names the verb and the subject."""
    if edit.new is None:
        return "drop it"
    if edit.old == edit.new:
        return "move it before the other `place` lines"
    return _options(edit.new) or "add it"


def _options(decision: Decision) -> str:
    return ", ".join(f"{name}={value}" for name, value in decision.options)


def _line(now: Decision | None, key: tuple[str, str], changes: Sequence[str]) -> str:
    verb, subject = key
    head = f"`{now}` -> " if now else f"add `{verb}({subject})` with " if "=" in changes[0] else ""
    if not head:
        return f"add `{verb}({subject})`"
    return head + " | ".join(_joined(changes))


def _joined(changes: Sequence[str]) -> list[str]:
    """Joins values of the same option: `size=8, 16, 32`."""
    values: dict[str, list[str]] = {}
    others: list[str] = []
    for change in dict.fromkeys(changes):
        name, equals, value = change.partition("=")
        if equals and "=" not in value:
            values.setdefault(name, []).append(value)
        else:
            others.append(change)
    return [f"{name}={', '.join(found)}" for name, found in values.items()] + others


def sizes_of(sizes: Sizes, workload: Sequence[Mapping[str, int]]) -> tuple[Sizes, ...]:
    """All shapes that a kernel must fit."""
    return (sizes, *(shape for shape in workload if dict(shape) != dict(sizes)))
