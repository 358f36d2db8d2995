"""Given: the texts that a user hands over in files, read and checked before anything starts."""

from __future__ import annotations

from pathlib import Path

from ir.errors import KernelError
from ir.lower.lower import lower
from ir.lower.verbs import canonical
from ir.machine import Machine
from ir.parse.parse import parse_schedule
from ir.source import near
from ir.spec import Spec
from ir.workload import Sizes


def text_of(file: Path, option: str, ending: str) -> str:
    """What a file holds; KernelError where it cannot be read as a text."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelError(
            f"`{file}` cannot be read: {error.strerror}",
            where=option,
            hint=near(file.name, _beside(file, ending), f"give the path of a {ending} file"),
        ) from error
    except UnicodeDecodeError as error:
        raise KernelError(
            f"the file is not a text in UTF-8: {error.reason}",
            where=str(file),
            hint="save it as UTF-8",
        ) from error


def _beside(file: Path, ending: str) -> list[str]:
    """The names of the files with an ending in a file's folder; none where that is no folder."""
    try:
        return sorted(each.name for each in file.parent.iterdir() if each.suffix == ending)
    except OSError:
        return []


def given_schedule(file: Path, spec: Spec, machine: Machine, sizes: Sizes) -> str:
    """A schedule's text in canonical order; KernelError, within the file, where it is not legal
    for the spec or does not fit the machine at the sizes."""
    text = text_of(file, "--schedule", ".sched")
    schedule = parse_schedule(text, str(file))
    try:
        lower(spec, schedule, machine, sizes)
    except KernelError as error:
        raise error.within(f"{file}, on target `{machine.name}`") from None
    return str(canonical(schedule))
