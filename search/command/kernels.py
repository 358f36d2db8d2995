"""The list of the library's kernels: signatures, tuning sizes, what they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ir.parse.parse import parse_workload
from ir.print import signature
from search import quantity
from search.command.suite import ENDING, LIBRARY, library


def kernels() -> list[dict[str, Any]]:
    """Each kernel as plain data."""
    found = []
    for name in library():
        text = (LIBRARY / (name + ENDING)).read_text(encoding="utf-8")
        held = parse_workload(text, name)
        found.append(
            {
                "kernel": name,
                "signature": signature(held.spec),
                "title": held.spec.doc.strip().partition("\n")[0],
                "tune": dict(held.tune) if held.tune is not None else None,
                "checks": [dict(sizes) for sizes in held.checks],
            }
        )
    return found


def kernels_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The list for a person: a signature, and below it the tuning sizes and the title."""
    return "".join(
        f"{row['signature']}\n    {row['title']}\n    tuned for {quantity.shape(row['tune'] or {})}\n"
        for row in rows
    )
