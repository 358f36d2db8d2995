"""PostgreSQL: transactions that are repeated if the server is lost, and locks that end with the
connection.

All writes to runs use one connection, which holds an advisory lock for each run that this process
works on. The locks end with the connection, so the runs of a killed process are free at once.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from ir.errors import KernelError
from search.store.address import Address
from search.store.database import Database
from search.store.holder import Holder
from search.store.leases import StoredLeases

TRY_SECONDS = 120.0  # seconds of attempts after a server is lost
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0  # seconds between attempts; the wait doubles
SILENT_SECONDS = 1.0  # seconds before a message
DRIVER = "postgresql+psycopg"
CONNECT = {
    "connect_timeout": 10,
    "application_name": "speciate",
    # A lost peer is noticed within a minute.
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
CONNECTIONS = 32  # largest number of connections of one process
# By SQLSTATE: connections, temporary lack of resources, a server that stops or starts, a server
# that became a standby, conflicts between transactions.
PASSING_CLASSES = ("08", "53")
PASSING = ("57P01", "57P02", "57P03", "25006", "40001", "40P01")

T = TypeVar("T")


class _StillThere(SQLAlchemyError):
    """The server still holds a connection that this process has lost."""


class Postgres(Database):
    """A PostgreSQL database, shared by several processes and machines."""

    is_shared = True
    remedy = "restore the database from a backup"

    def __init__(self, address: Address, say: Callable[[str], None]):
        self._say = say
        self._mutex = threading.RLock()
        self._writer: Connection | None = None
        self._backend: tuple[Any, ...] = ()  # the server's process for the writer
        self._held: set[str] = set()  # runs that this process works on
        self._draws = random.Random()
        super().__init__(address)
        self._snapshots = self.engine.execution_options(isolation_level="REPEATABLE READ")

    def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` on a consistent snapshot, with repetition as in `write`."""

        def attempt(_: bool) -> T:
            with self._snapshots.begin() as connection:
                return work(connection)

        return self._tried(attempt)

    def write(self, work: Callable[[Connection, bool], T]) -> T:
        """Runs `work` in a transaction on the connection that holds the locks of runs.

        A transaction that is lost with its connection is repeated for `TRY_SECONDS`. It is then
        unknown whether the commit took effect; the second argument of `work` is True, and `work`
        must find out.
        """

        def attempt(again: bool) -> T:
            with self._mutex:
                connection = self._connected()
                try:
                    with connection.begin():
                        return work(connection, again)
                except SQLAlchemyError:
                    if connection.invalidated:
                        self._drop()
                    raise

        return self._tried(attempt)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A consistent read transaction, without repetition."""
        try:
            with self._snapshots.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self.fault(error) from error

    def alone(self, connection: Connection) -> None:
        """Locks out other callers of this method until the end of the transaction."""
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_key("store"))))

    def hold(self, connection: Connection, run: str, held: Holder | None, idle: float) -> bool:
        """Locks a run for this process as long as its connection lives. Returns False if another
        process has the lock."""
        if run not in self._held and connection.scalar(
            sql.select(sql.func.pg_try_advisory_lock(_key(f"run {run}")))
        ):
            self._held.add(run)
        return run in self._held

    def is_held(self, connection: Connection, run: str, held: Holder, idle: float) -> bool:
        """Whether a process works on a run, on another connection."""
        lock = sql.func.pg_try_advisory_xact_lock_shared(_key(f"run {run}"))
        return not connection.scalar(sql.select(lock))

    def let_go(self, run: str) -> None:
        """Unlocks a run."""
        if run in self._held:
            unlock = sql.select(sql.func.pg_advisory_unlock(_key(f"run {run}")))
            self._held.discard(run)
            self.write(lambda connection, again: connection.execute(unlock))

    def leases(self) -> StoredLeases:
        """The leases on candidates."""
        return StoredLeases(self)

    def fault(self, error: SQLAlchemyError) -> KernelError:
        """A server error as a message for a user."""
        cause = getattr(error, "orig", None) or error
        hint = ""
        if _is_of_connection(error):
            hint = (
                "start the server, or see to its address, user and password (PGPASSWORD, ~/.pgpass)"
            )
        return self.refusal(f"the store cannot be used: {cause}", hint)

    def close(self) -> None:
        """Closes all connections, which releases all locks."""
        with self._mutex:
            self._drop()
            self._held.clear()
            super().close()

    def _tried(self, attempt: Callable[[bool], T]) -> T:
        """Runs an attempt, and repeats it after a temporary error. Raises KernelError if the server
        does not come back in time.

        attempt: its argument is whether it is a repetition.
        """
        wait, began, said = FIRST_WAIT, 0.0, False
        while True:
            try:
                found = attempt(began > 0.0)
            except SQLAlchemyError as error:
                if not _is_passing(error):
                    raise self.fault(error) from error
                began = began or time.monotonic()
                lost = time.monotonic() - began
                if lost >= TRY_SECONDS:
                    raise self._lost(error) from error
                if lost > SILENT_SECONDS and not said:
                    said = True
                    self._say(f"the store's server is lost; trying again for {TRY_SECONDS:.0f} s")
                time.sleep(wait * self._draws.uniform(0.5, 1.0))
                wait = min(2 * wait, LONGEST_WAIT)
                continue
            if said:
                self._say("the store's server is there again")
            return found

    def _lost(self, error: SQLAlchemyError) -> KernelError:
        return self.refusal(
            f"the store's server was lost, and not available again within {TRY_SECONDS:.0f} s: "
            f"{getattr(error, 'orig', None) or error}",
            "stored data are kept: continue with --resume when the server is available",
        )

    def _connected(self) -> Connection:
        """The writing connection, with the locks of all runs that this process works on."""
        if self._writer is not None and self._writer.invalidated:  # by an interrupt
            self._drop()
        if self._writer is None:
            connection = self.engine.connect()
            try:
                self._lock_again(connection)
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._writer = connection
        return self._writer

    def _lock_again(self, connection: Connection) -> None:
        with connection.begin():
            for run in sorted(self._held):
                lock = sql.func.pg_try_advisory_lock(_key(f"run {run}"))
                if connection.scalar(sql.select(lock)):
                    continue
                # Another process has the lock, as the run's row says; or the server has not noticed
                # yet that this process's last connection is lost.
                last = dict(zip(("pid", "start"), self._backend, strict=True))
                if connection.execute(_END, last).first() is not None:
                    raise _StillThere(f"the last connection still holds run `{run}`")
                self._held.discard(run)
            self._backend = tuple(connection.execute(_BACKEND).one())

    def _drop(self) -> None:
        if self._writer is not None:
            with suppress(SQLAlchemyError):
                self._writer.invalidate()
                self._writer.close()
            self._writer = None

    def _made(self) -> Engine:
        url = make_url(self.address.url).set(drivername=DRIVER)
        given = {name: value for name, value in CONNECT.items() if name not in url.query}
        try:
            return sql.create_engine(
                url, connect_args=given, pool_size=4, max_overflow=CONNECTIONS - 4
            )
        except ImportError as error:
            raise KernelError(
                f"a store on a PostgreSQL server needs the Python package `psycopg`: {error}",
                where=self.address.shown,
                hint="pip install 'psycopg[binary]', or give the path of a file with --store",
            ) from error


_BACKEND = sql.text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
_END = sql.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid = :pid AND backend_start = :start"
)


def _key(of: str) -> sql.ColumnElement[int]:
    """The number of an advisory lock. Locks belong to a database, which may have a store in each
    schema."""
    name = sql.func.concat("speciate ", sql.func.current_schema(), " ", of)
    return sql.func.hashtextextended(name, 0)


def _is_passing(error: SQLAlchemyError) -> bool:
    """Whether a transaction may succeed if it is repeated."""
    if isinstance(error, _StillThere):
        return True
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    if state is not None:
        return state.startswith(PASSING_CLASSES) or state in PASSING
    return _is_of_connection(error)


def _is_of_connection(error: SQLAlchemyError) -> bool:
    """Whether an error is the client's and about its connection."""
    if not isinstance(error, DBAPIError) or getattr(error.orig, "sqlstate", None) is not None:
        return False
    return error.connection_invalidated or isinstance(error, OperationalError)
