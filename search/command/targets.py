"""The list of targets: what can be evolved for, and what this machine can do for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backends.registry import backend, target, target_names
from ir.errors import KernelError
from search.command.table import columns

SAID = ("device", "toolchain")
TITLES = ("target", "backend", "correct by", "time", "with", "what it is")


def listing() -> list[dict[str, Any]]:
    """Each target with each of its backends, as plain data."""
    rows = []
    for name in target_names():
        machine = target(name)
        for serving in machine.backends:
            here = _here(serving, machine)
            rows.append({"target": name, "backend": serving, "title": machine.title, **here})
    return rows


def listing_text(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> str:
    """The list for a person; what backends have to say of this machine comes below it."""
    cells = [
        (
            row["target"],
            row["backend"],
            row["correct_by"] or "not here",
            row["time_kind"] or "not here",
            row["device"] or row["toolchain"] or "-",
            row["title"],
        )
        for row in rows
    ]
    lacking = {f"{row['backend']}: {row['why']}\n" for row in rows if row["why"]}
    return columns([TITLES, *cells], "<<<<<<", width) + "".join(sorted(lacking))


def _here(serving: str, machine: Any) -> dict[str, Any]:
    try:
        found = backend(serving).available(machine)
    except KernelError as error:
        found = {"why": error.what}
    return {name: found.get(name) for name in ("correct_by", "time_kind", *SAID, "why")}
