"""Rows of a store's tables for candidates and events, as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from search.core.candidate import Candidate, candidate
from search.core.stored import StoredEvent
from search.store.artefacts import Artefacts, read_source

Row = dict[str, Any]


def node_row(
    run: str, generation: int, rank: int, asked: Candidate, artefacts: Artefacts | None = None
) -> Row:
    """The row of a candidate, the `rank`-th of a generation. artefacts: the place for a large
    source."""
    table = asked.table()
    text = json.dumps(table if artefacts is None else artefacts.kept_source(table))
    return dict(run=run, key=asked.key, generation=generation, rank=rank, candidate=text)


def edge_rows(run: str, asked: Candidate) -> list[Row]:
    """The rows of a candidate's edges, one for each parent in order."""
    how = dict(operator=asked.origin.operator, note=_text(asked.origin.note))
    return [
        dict(run=run, child=asked.key, rank=at, parent=parent, **how)
        for at, parent in enumerate(asked.origin.parents)
    ]


def event_row(run: str, event: StoredEvent) -> Row:
    """The row of a log entry."""
    return dict(run=run, **asdict(event) | {"detail": _text(event.detail)})


def _text(given: str) -> str:
    """The text without NUL, which not every database accepts and a model's text may contain. JSON
    has none."""
    return given.replace("\0", "\N{REPLACEMENT CHARACTER}")


def generations(
    rows: Iterable[tuple[int, str]], artefacts: Artefacts | None = None
) -> tuple[tuple[Candidate, ...], ...]:
    """The candidates of each generation, from sorted pairs (generation, candidate)."""
    found: list[list[Candidate]] = []
    for generation, text in rows:
        while len(found) <= generation:
            found.append([])
        found[generation].append(candidate(read_source(json.loads(text), artefacts)))
    return tuple(tuple(g) for g in found)
