"""A database: its transactions, and its errors as readable messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from ir.errors import KernelError
from search.store.address import ALLOWED, POSTGRESQL, Address, is_url
from search.store.holder import Holder, here

if TYPE_CHECKING:
    from search.store.leases import StoredLeases  # only for PostgreSQL

BUSY_SECONDS = 30.0  # seconds to wait for another writer

T = TypeVar("T")


class Database:
    """An SQLite file with one writer at a time. Each transaction is atomic."""

    is_shared = False  # whether several machines use it
    remedy = "`evolve --salvage=NEW.db` copies what can be read"  # for damaged rows

    def __init__(self, address: Address):
        self.address = address
        self.engine = self._engine()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` on a consistent snapshot. Returns its result."""
        with self.transaction() as connection:
            return work(connection)

    def write(self, work: Callable[[Connection, bool], T]) -> T:
        """Runs `work` in a transaction. Its second argument is whether an earlier attempt may have
        taken effect; always False here."""
        with self.transaction() as connection:
            return work(connection, False)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction without repetition. Raises KernelError if the database cannot be used."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self.fault(error) from error

    def snapshot(self) -> AbstractContextManager[Connection]:
        """The same as `transaction`, for a consistent read."""
        return self.transaction()

    def alone(self, connection: Connection) -> None:
        """Locks out other writers until the end of the transaction. Here every transaction does."""

    def hold(self, connection: Connection, run: str, held: Holder | None, idle: float) -> bool:
        """Whether this process may work on a run from now on.

        connection: of `write`. held: the last process that worked on it; None: none. idle: seconds
        since its last write.
        """
        return held is None or held == here() or held.has_ended(idle)

    def is_held(self, connection: Connection, run: str, held: Holder, idle: float) -> bool:
        """Whether a process works on a run."""
        return not held.has_ended(idle)

    def let_go(self, run: str) -> None:
        """Ends this process's work on a run, after its row was removed."""

    def leases(self) -> StoredLeases | None:
        """The leases on candidates; None if no other machine shares the store."""
        return None

    def fault(self, error: SQLAlchemyError) -> KernelError:
        """A database error as a message for a user."""
        cause = getattr(error, "orig", None) or error
        damaged = isinstance(cause, sqlite3.DatabaseError) and "malformed" in str(cause)
        return self.refusal(f"the store cannot be used: {cause}", self.remedy * damaged)

    def refusal(self, what: str, hint: str = "") -> KernelError:
        """An error of the store, without the password of its address."""
        return KernelError(
            " ".join(self.address.scrubbed(what).split()),
            where=self.address.shown,
            allowed=f"a store in a place that can be written: {ALLOWED}",
            hint=hint or "give another with --store",
        )

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()

    def _engine(self) -> Engine:
        try:
            return self._made()
        except (OSError, ValueError) as error:
            raise self.refusal(f"the store cannot be made: {error}") from error
        except (ArgumentError, NoSuchModuleError) as error:
            raise self.refusal(f"not a store that can be used here: {error}") from error

    def _made(self) -> Engine:
        given = self.address.url
        url = make_url(given) if is_url(given) else URL.create("sqlite", database=given)
        if url.database not in (None, "", ":memory:"):
            Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = sql.create_engine(url)
        sql.event.listen(engine, "connect", _prepare_sqlite)
        sql.event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Sets up a write-ahead log, and transactions that begin explicitly and not by the driver."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def database_at(address: Address, say: Callable[[str], None]) -> Database:
    """The database at an address, which is not opened yet. say: called when a server is lost or
    found again."""
    if address.kind == POSTGRESQL:
        from search.store.postgres import Postgres  # PostgreSQL is optional

        return Postgres(address, say)
    return Database(address)
