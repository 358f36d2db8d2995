"""Removes the artefacts that no row of a store refers to."""

from __future__ import annotations

import sqlalchemy as sql

from ir.errors import KernelError
from search.store.artefacts import referred
from search.store.copying import ROWS, require_idle
from search.store.schema import EXCHANGES, NODES
from search.store.store import Store

COLUMNS = (NODES.c.candidate, EXCHANGES.c.request, EXCHANGES.c.reply)


def collect(store: Store) -> tuple[int, int]:
    """Removes unused artefacts. Returns how many were removed and how many are left.

    Raises KernelError if the store has no artefacts, or if a process works on a run, because that
    may add a reference.
    """
    if store.artefacts is None:
        raise KernelError(
            "the store keeps all in its rows: it was never told a place for artefacts",
            where=store.url,
            hint="--artefacts=DIR names one",
        )
    needed: set[str] = set()
    with store.transaction() as connection:
        store.database.alone(connection)  # prevents new runs
        require_idle(store, connection)
        for column in COLUMNS:
            large = sql.select(column).where(column.contains("artefact", autoescape=True))
            found = connection.execution_options(yield_per=ROWS).execute(large)
            for row in found.mappings():
                needed.update(referred(row))
        return store.artefacts.collect(needed)
