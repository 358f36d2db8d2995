"""Leases: which candidates this process evaluates, for processes that share the store.

A lease is a row that is valid until a time of the server's clock; a thread extends it. Rows of a
killed process expire soon. After a restart of the server, each lease is valid for the full duration
again.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import sqlalchemy as sql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from ir.errors import KernelError
from search.store.database import Database
from search.store.schema import LEASES

LEASE_SECONDS = 30.0  # seconds that a row is valid without an extension
BEAT_SECONDS = 5.0  # seconds between extensions

Work = tuple[str, str]  # (context, key) of a candidate

_NOW = sql.literal_column("extract(epoch from clock_timestamp())", sql.Float)
_STARTED = sql.literal_column("extract(epoch from pg_postmaster_start_time())", sql.Float)
_IS_FREE = (LEASES.c.holder == "") | (
    sql.func.greatest(LEASES.c.until, _STARTED + LEASE_SECONDS) < _NOW
)


class StoredLeases:
    """The leases of one open store on a PostgreSQL server."""

    def __init__(self, database: Database):
        self._database = database
        self._holder = secrets.token_hex(8)
        self._mine: set[Work] = set()
        self._guard = threading.Lock()
        self._closed = threading.Event()
        self._beating: threading.Thread | None = None

    def claim(self, wanted: Sequence[Work]) -> frozenset[Work]:
        """Leases candidates for this process. Returns those that it got; others are leased by other
        processes or already done."""
        if not wanted:
            return frozenset()
        rows = [dict(context=c, key=k, holder="", until=0.0) for c, k in sorted(set(wanted))]
        these = _are(wanted)

        def work(connection: Connection, again: bool) -> frozenset[Work]:
            connection.execute(insert(LEASES).on_conflict_do_nothing(), rows)
            mine = _IS_FREE | (LEASES.c.holder == self._holder) if again else _IS_FREE
            columns = (LEASES.c.context, LEASES.c.key)
            free = sql.select(*columns).where(these & mine).order_by(*columns)
            got = [tuple(r) for r in connection.execute(free.with_for_update(skip_locked=True))]
            if got:
                moved = dict(holder=self._holder, until=_NOW + LEASE_SECONDS)
                connection.execute(LEASES.update().where(_are(got)).values(moved))
            return frozenset(got)

        found = self._database.write(work)
        with self._guard:
            self._mine |= found
        self._beat()
        return found

    def free(self, wanted: Sequence[Work]) -> frozenset[Work]:
        """Those that no process evaluates now."""
        taken = sql.select(LEASES.c.context, LEASES.c.key).where(_are(wanted) & ~_IS_FREE)
        rows = self._database.read(lambda connection: connection.execute(taken).all())
        return frozenset(wanted) - {tuple(row) for row in rows}

    def release(self, done: Collection[Work]) -> None:
        """Releases candidates that got no outcome."""
        left = self._mine & set(done)
        if left:
            mine = _are(left) & (LEASES.c.holder == self._holder)
            self._database.write(lambda c, again: c.execute(LEASES.delete().where(mine)))
            self.forget(left)

    def end(self, connection: Connection, done: Work) -> None:
        """Ends a lease in the transaction that stores the outcome. Call `forget` after that has
        taken effect."""
        if done in self._mine:
            mine = _are([done]) & (LEASES.c.holder == self._holder)
            connection.execute(LEASES.delete().where(mine))

    def close(self) -> None:
        """Releases all leases if the server can be reached; otherwise they expire."""
        self._closed.set()
        if self._beating is not None:
            self._beating.join()
        with suppress(KernelError), self._database.transaction() as connection:
            if self._mine:
                connection.execute(LEASES.delete().where(LEASES.c.holder == self._holder))
        self._mine.clear()

    def forget(self, done: Iterable[Work]) -> None:
        """Marks leases as ended."""
        with self._guard:
            self._mine -= set(done)

    def _beat(self) -> None:
        """Starts the thread that extends leases."""
        with self._guard:
            if self._beating is None and self._mine:
                self._beating = threading.Thread(target=self._beats, name="leases", daemon=True)
                self._beating.start()

    def _beats(self) -> None:
        later = LEASES.update().where(LEASES.c.holder == self._holder)
        while not self._closed.wait(BEAT_SECONDS):
            # Without the server no lease can be extended, and no other process can claim one.
            with suppress(KernelError), self._database.transaction() as connection:
                connection.execute(later.values(until=_NOW + LEASE_SECONDS))


def _are(works: Iterable[Work]) -> sql.ColumnElement[bool]:
    return sql.tuple_(LEASES.c.context, LEASES.c.key).in_(sorted(set(works)))
