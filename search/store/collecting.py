"""Removes the artefacts that nothing in a store refers to any more."""

from __future__ import annotations

import sqlalchemy as sql

from ir.errors import KernelError
from search.store.artefacts import referred
from search.store.copying import ROWS, require_idle
from search.store.schema import EXCHANGES, NODES
from search.store.store import Store

COLUMNS = (NODES.c.candidate, EXCHANGES.c.request, EXCHANGES.c.reply)


def collect(store: Store) -> tuple[int, int]:
    """How many artefacts were removed, and how many are left; KernelError where the store has none, and
    where a process works on a run: that may be about to refer to one."""
    if store.artefacts is None:
        raise KernelError(
            "the store keeps all in its rows: it was never told a place for artefacts",
            where=store.url,
            hint="--artefacts=DIR names one",
        )
    needed: set[str] = set()
    with store.transaction() as connection:
        store.database.alone(connection)  # no run is started now
        require_idle(store, connection)
        for column in COLUMNS:
            large = sql.select(column).where(column.contains("artefact", autoescape=True))
            found = connection.execution_options(yield_per=ROWS).execute(large)
            for row in found.mappings():
                needed.update(referred(row))
        return store.artefacts.collect(needed)
