"""The store: every run, node, edge, evaluation, exchange and event, written before it is used."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, from_json, to_json
from search.core.settings import Settings, settings
from search.core.stored import StoredEvent, StoredExchange, StoredRun
from search.store.holder import here, holder_of
from search.store.rows import edge_rows, event_row, generations, node_row
from search.store.schema import (
    CLAIMS,
    EDGES,
    EVALUATIONS,
    EVENTS,
    EXCHANGES,
    NODES,
    RUNS,
    SECRET,
    prepare,
)

BUSY_SECONDS = 30.0  # how long to wait for another writer
DAMAGE = (ValueError, KeyError, TypeError, AttributeError)  # what reading a damaged text raises
SALVAGE = "`evolve --salvage=NEW.db` copies what can be read"


class Store:
    """Runs in a database; see `stored.Keeper`. Each method is one transaction."""

    def __init__(self, url: str):
        """url: of a database, or the path of an SQLite file, which is made where missing."""
        self.url = url if "://" in url else str(Path(url).expanduser().absolute())
        self._engine = self._open()
        with self.transaction() as connection:
            prepare(connection, self.url)

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """A new run; its name."""
        with self.transaction() as connection:
            stem = f"{chosen.kernel}-{chosen.target}-"
            taken = set(connection.scalars(sql.select(RUNS.c.id)))
            number = next(n for n in range(1, len(taken) + 2) if f"{stem}{n}" not in taken)
            run = f"{stem}{number}"
            connection.execute(
                RUNS.insert().values(
                    id=run,
                    kernel=chosen.kernel,
                    target=chosen.target,
                    settings=chosen.to_json(),
                    environment=json.dumps(environment),
                    started=time.time(),
                )
            )
            self._claim(connection, run)
            _log(connection, run, StoredEvent("started", "", 0.0, ""))
        return run

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """A generation is about to be evaluated. One that was asked before is replaced."""
        with self.transaction() as connection:
            self._renew(connection, run)
            here = (NODES.c.run == run) & (NODES.c.generation == generation)
            old = list(connection.scalars(sql.select(NODES.c.key).where(here)))
            new = [c.key for c in candidates]
            if old and set(old) == set(new):
                return
            gone = [k for k in old if k not in new]
            connection.execute(NODES.delete().where(here))
            connection.execute(EDGES.delete().where((EDGES.c.run == run) & EDGES.c.child.in_(old)))
            for rank, c in enumerate(candidates):
                connection.execute(NODES.insert().values(node_row(run, generation, rank, c)))
                for row in edge_rows(run, c):
                    connection.execute(EDGES.insert().values(row))
                _log(connection, run, StoredEvent("asked", c.key, seconds, str(generation)))
            for key in gone:
                _log(connection, run, StoredEvent("withdrawn", key, seconds, str(generation)))

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """What became of a candidate. context: digest of all that the outcome depends on."""
        with self.transaction() as connection:
            self._renew(connection, run)
            connection.execute(
                EVALUATIONS.insert().values(
                    run=run, key=key, context=context, outcome=to_json(outcome), at=time.time()
                )
            )
            _log(connection, run, StoredEvent("evaluated", key, seconds, ""))

    def log(self, run: str, event: StoredEvent) -> None:
        """Adds a line to a run's log. After `stopped`, another process may go on with the run."""
        with self.transaction() as connection:
            self._renew(connection, run)
            _log(connection, run, event)
            if event.kind == "stopped":
                connection.execute(CLAIMS.delete().where(CLAIMS.c.run == run))

    def cached(self, key: str, context: str) -> Evaluated | None:
        """What became of a candidate in any run, in the same context; the latest. One whose row is
        damaged is not known."""
        here = (EVALUATIONS.c.key == key) & (EVALUATIONS.c.context == context)
        query = sql.select(EVALUATIONS.c.outcome).where(here).order_by(EVALUATIONS.c.at.desc())
        with self.transaction() as connection:
            text = connection.scalars(query.limit(1)).first()
        try:
            return None if text is None else from_json(text)
        except DAMAGE:
            return None

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Keeps an exchange with a model; one of the same digest and rank is replaced."""
        here = (EXCHANGES.c.digest == exchange.digest) & (EXCHANGES.c.rank == exchange.rank)
        with self.transaction() as connection:
            connection.execute(EXCHANGES.delete().where((EXCHANGES.c.run == run) & here))
            connection.execute(EXCHANGES.insert().values(run=run, **asdict(exchange)))

    def exchanges(self, run: str) -> tuple[StoredExchange, ...]:
        """All exchanges of a run, in the order in which they ended."""
        columns = [EXCHANGES.c[f.name] for f in fields(StoredExchange)]
        query = sql.select(*columns).where(EXCHANGES.c.run == run).order_by(EXCHANGES.c.id)
        with self.transaction() as connection:
            return tuple(StoredExchange(*row) for row in connection.execute(query))

    def secret(self) -> str:
        """The store's own random text, made when it is first asked for."""
        with self.transaction() as connection:
            known = connection.scalar(sql.select(SECRET.c.text))
            if known is None:
                known = secrets.token_hex(16)
                connection.execute(SECRET.insert().values(text=known))
        return str(known)

    def runs(self) -> tuple[str, ...]:
        """The names of all runs, the latest first."""
        with self.transaction() as connection:
            return tuple(connection.scalars(sql.select(RUNS.c.id).order_by(RUNS.c.started.desc())))

    def started(self) -> dict[str, float]:
        """When each run was started, in seconds since 1970, by its name; the latest first."""
        query = sql.select(RUNS.c.id, RUNS.c.started).order_by(RUNS.c.started.desc())
        with self.transaction() as connection:
            return {row.id: row.started for row in connection.execute(query)}

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The names of the runs of a kernel, the latest first."""
        query = sql.select(RUNS.c.id).where(RUNS.c.kernel == kernel)
        with self.transaction() as connection:
            return tuple(connection.scalars(query.order_by(RUNS.c.started.desc())))

    def load(self, run: str) -> StoredRun:
        """A run; KernelError where there is none of that name, or its rows are damaged."""
        with self.transaction() as connection:
            row = connection.execute(sql.select(RUNS).where(RUNS.c.id == run)).first()
            if row is not None:
                return self._loaded(connection, row)
        known = ", ".join(self.runs()[:8])
        raise KernelError(
            f"the store has no run `{run}`",
            where=self.url,
            allowed=known,
            hint="name another run, or another store with --store",
        )

    def resume(self, run: str) -> StoredRun:
        """A run that this process goes on with; KernelError as for `load`, and where another process
        works on it."""
        found = self.load(run)
        with self.transaction() as connection:
            self._claim(connection, run)
        return found

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _loaded(self, connection: Connection, row: Any) -> StoredRun:
        part, run = "settings", row.id
        try:
            chosen = settings(row.settings)
            part = "environment"
            environment = json.loads(row.environment)
            part = "candidates"
            found = _generations(connection, run)
            part = "evaluations"
            outcomes = _outcomes(connection, run)
        except DAMAGE as error:
            raise KernelError(
                f"the {part} of run `{run}` are damaged: {type(error).__name__}: {error}",
                where=self.url,
                hint=SALVAGE,
            ) from error
        log = _log_of(connection, run)
        return StoredRun(run, chosen, environment, found, outcomes, log)

    def _claim(self, connection: Connection, run: str) -> None:
        """Notes that this process works on a run; KernelError where another one does."""
        row = connection.execute(sql.select(CLAIMS).where(CLAIMS.c.run == run)).first()
        if row is not None:
            held = holder_of(row.holder)
            if held != here() and not held.has_ended(time.time() - row.at):
                raise KernelError(
                    f"{held} works on run `{run}`",
                    where=self.url,
                    hint="wait until it has ended, or stop it",
                )
            connection.execute(CLAIMS.delete().where(CLAIMS.c.run == run))
        now = dict(run=run, holder=here().text, at=time.time())
        connection.execute(CLAIMS.insert().values(now))

    def _renew(self, connection: Connection, run: str) -> None:
        """Notes that this process still works on a run; KernelError where another one has taken it
        over."""
        own = (CLAIMS.c.run == run) & (CLAIMS.c.holder == here().text)
        if not connection.execute(CLAIMS.update().where(own).values(at=time.time())).rowcount:
            raise KernelError(
                f"run `{run}` is not this process's any more: another one has gone on with it",
                where=self.url,
                hint=f"see it with --show={run}",
            )

    def _open(self) -> Engine:
        try:
            url = (
                make_url(self.url) if "://" in self.url else URL.create("sqlite", database=self.url)
            )
            if url.drivername.startswith("sqlite") and url.database not in (None, "", ":memory:"):
                Path(url.database).parent.mkdir(parents=True, exist_ok=True)
            engine = sql.create_engine(url)
        except (OSError, ValueError) as error:
            raise self._fault(f"the store cannot be made: {error}") from error
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise self._fault(f"not a store that can be used here: {error}") from error
        if engine.dialect.name == "sqlite":
            sql.event.listen(engine, "connect", _prepare_sqlite)
            sql.event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            damaged = isinstance(cause, sqlite3.DatabaseError) and "malformed" in str(cause)
            raise self._fault(f"the store cannot be used: {cause}", SALVAGE * damaged) from error

    def _fault(self, what: str, hint: str = "") -> KernelError:
        return KernelError(
            what,
            where=self.url,
            allowed="a file in a folder that can be written, or a database's URL",
            hint=hint or "give another with --store",
        )


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Write-ahead log, and transactions that begin when we say so and not when the driver does."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _log(connection: Connection, run: str, event: StoredEvent) -> None:
    connection.execute(EVENTS.insert().values(event_row(run, event)))


def _generations(connection: Connection, run: str) -> tuple[tuple[Candidate, ...], ...]:
    columns = (NODES.c.generation, NODES.c.candidate)
    query = sql.select(*columns).where(NODES.c.run == run)
    return generations(connection.execute(query.order_by(NODES.c.generation, NODES.c.rank)))


def _outcomes(connection: Connection, run: str) -> dict[str, Evaluated]:
    query = sql.select(EVALUATIONS.c.key, EVALUATIONS.c.outcome).where(EVALUATIONS.c.run == run)
    return {key: from_json(text) for key, text in connection.execute(query)}


def _log_of(connection: Connection, run: str) -> tuple[StoredEvent, ...]:
    columns = (EVENTS.c.kind, EVENTS.c.key, EVENTS.c.seconds, EVENTS.c.detail)
    query = sql.select(*columns).where(EVENTS.c.run == run).order_by(EVENTS.c.id)
    return tuple(StoredEvent(*row) for row in connection.execute(query))
