"""Differences: the changes from one candidate to another, as lines of text."""

from __future__ import annotations

from ir.edits.edits import Edit, difference
from search.core.candidate import Candidate
from search.core.lowered import schedule_of

ARROW = "\N{RIGHTWARDS ARROW}"


def lines(before: Candidate, after: Candidate) -> tuple[str, ...]:
    """A line for each changed decision; `+` marks an added one, `-` a removed one."""
    edits = difference(schedule_of(before.schedule), schedule_of(after.schedule))
    found = [line(edit) for edit in edits]
    if not found and before.schedule != after.schedule:
        found.append("the same decisions in another order")
    if before.backend != after.backend:
        found.append(f"backend: {before.backend} {ARROW} {after.backend}")
    if before.variant != after.variant:
        found.append(f"other equations, equal to the spec's{_how(after)}")
    if before.source != after.source:
        found.append(f"other source{_how(after)}")
    if after.origin.trial is not None:
        found.append(f"with {after.origin.trial}, parameters of answer {after.origin.trial.answer}")
    return tuple(found)


def _how(after: Candidate) -> str:
    """The origin of a candidate in its operator's words."""
    how = ": ".join(w for w in (after.origin.operator, after.origin.note.rstrip(".")) if w)
    return f", by {how}" if how else ""


def line(edit: Edit) -> str:
    """One change: `tile(m): size 32 -> 64`, `+ hoist(r, into=y)`, `- pipeline(x, stages=2)`."""
    old, new = edit.old, edit.new
    if old is None or new is None:
        return f"- {old}" if old else f"+ {new}"
    names = dict.fromkeys(name for name, _ in (*old.options, *new.options))
    changes = (
        f"{name} {_said(old.option(name))} {ARROW} {_said(new.option(name))}"
        for name in names
        if old.option(name) != new.option(name)
    )
    return f"{new.verb}({new.subject}): {', '.join(changes)}"


def _said(value: object) -> str:
    return "none" if value is None else str(value)
