"""Rows: what a store's tables hold of candidates and events, as plain data."""

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
    """A candidate, as the `rank`-th of a generation. artefacts: where a large source goes."""
    table = asked.table()
    text = json.dumps(table if artefacts is None else artefacts.kept_source(table))
    return dict(run=run, key=asked.key, generation=generation, rank=rank, candidate=text)


def edge_rows(run: str, asked: Candidate) -> list[Row]:
    """A candidate's edges, one to each parent in order."""
    how = dict(operator=asked.origin.operator, note=_text(asked.origin.note))
    return [
        dict(run=run, child=asked.key, rank=at, parent=parent, **how)
        for at, parent in enumerate(asked.origin.parents)
    ]


def event_row(run: str, event: StoredEvent) -> Row:
    """A line of a run's log."""
    return dict(run=run, **asdict(event) | {"detail": _text(event.detail)})


def _text(given: str) -> str:
    """A text that every database takes; that of a model may hold anything. JSON is one already."""
    return given.replace("\0", "\N{REPLACEMENT CHARACTER}")


def generations(
    rows: Iterable[tuple[int, str]], artefacts: Artefacts | None = None
) -> tuple[tuple[Candidate, ...], ...]:
    """The candidates of each generation, of (generation, candidate) in order."""
    found: list[list[Candidate]] = []
    for generation, text in rows:
        while len(found) <= generation:
            found.append([])
        found[generation].append(candidate(read_source(json.loads(text), artefacts)))
    return tuple(tuple(g) for g in found)
