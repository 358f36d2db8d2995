"""The store: every run, node, edge, evaluation, exchange and event, written before it is used."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, from_json, to_json
from search.core.settings import Settings, settings
from search.core.stored import StoredEvent, StoredExchange, StoredRun
from search.store.rows import edge_rows, event_row, generations, node_row

BUSY_SECONDS = 30.0  # how long to wait for another writer
FORMAT = 2  # of the texts in columns; runs of format 1 name verbs and settings by retired words

_meta = sql.MetaData()
_format = sql.Table("format", _meta, sql.Column("number", sql.Integer, primary_key=True))
_secret = sql.Table("secret", _meta, sql.Column("text", sql.String, primary_key=True))
_runs = sql.Table(
    "runs",
    _meta,
    sql.Column("id", sql.String, primary_key=True),
    sql.Column("kernel", sql.String, nullable=False),
    sql.Column("target", sql.String, nullable=False),
    sql.Column("settings", sql.Text, nullable=False),
    sql.Column("environment", sql.Text, nullable=False),
    sql.Column("started", sql.Float, nullable=False),
)
_nodes = sql.Table(
    "nodes",
    _meta,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("key", sql.String, primary_key=True),
    sql.Column("generation", sql.Integer, nullable=False),
    sql.Column("rank", sql.Integer, nullable=False),
    sql.Column("candidate", sql.Text, nullable=False),
)
_edges = sql.Table(
    "edges",
    _meta,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("child", sql.String, primary_key=True),
    sql.Column("rank", sql.Integer, primary_key=True),
    sql.Column("parent", sql.String, nullable=False),
    sql.Column("operator", sql.String, nullable=False),
    sql.Column("note", sql.Text, nullable=False),
)
_evaluations = sql.Table(
    "evaluations",
    _meta,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("key", sql.String, primary_key=True, index=True),
    sql.Column("context", sql.String, nullable=False),
    sql.Column("outcome", sql.Text, nullable=False),
    sql.Column("at", sql.Float, nullable=False),
)
_events = sql.Table(
    "events",
    _meta,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("run", sql.ForeignKey("runs.id"), nullable=False, index=True),
    sql.Column("kind", sql.String, nullable=False),
    sql.Column("key", sql.String, nullable=False, default=""),
    sql.Column("seconds", sql.Float, nullable=False),
    sql.Column("detail", sql.Text, nullable=False, default=""),
)
_exchanges = sql.Table(
    "exchanges",
    _meta,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("run", sql.ForeignKey("runs.id"), nullable=False),
    sql.Column("digest", sql.String, nullable=False),
    sql.Column("rank", sql.Integer, nullable=False),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("reply", sql.Text, nullable=False),
    sql.Column("seconds", sql.Float, nullable=False),
    sql.UniqueConstraint("run", "digest", "rank"),
)


class Store:
    """Runs in a database; see `stored.Keeper`. Each method is one transaction."""

    def __init__(self, url: str):
        """url: of a database, or the path of an SQLite file, which is made where missing."""
        self.url = url if "://" in url else f"sqlite:///{Path(url).expanduser().absolute()}"
        self._engine = self._open()
        with self._transaction() as connection:
            self._prepare(connection)

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """A new run; its name."""
        with self._transaction() as connection:
            stem = f"{chosen.kernel}-{chosen.target}-"
            taken = set(connection.scalars(sql.select(_runs.c.id)))
            number = next(n for n in range(1, len(taken) + 2) if f"{stem}{n}" not in taken)
            run = f"{stem}{number}"
            connection.execute(
                _runs.insert().values(
                    id=run,
                    kernel=chosen.kernel,
                    target=chosen.target,
                    settings=chosen.to_json(),
                    environment=json.dumps(environment),
                    started=time.time(),
                )
            )
            _log(connection, run, StoredEvent("started", "", 0.0, ""))
        return run

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """A generation is about to be evaluated. One that was asked before is replaced."""
        with self._transaction() as connection:
            here = (_nodes.c.run == run) & (_nodes.c.generation == generation)
            old = list(connection.scalars(sql.select(_nodes.c.key).where(here)))
            new = [c.key for c in candidates]
            if old and set(old) == set(new):
                return
            gone = [k for k in old if k not in new]
            connection.execute(_nodes.delete().where(here))
            connection.execute(
                _edges.delete().where((_edges.c.run == run) & _edges.c.child.in_(old))
            )
            for rank, c in enumerate(candidates):
                connection.execute(_nodes.insert().values(node_row(run, generation, rank, c)))
                for row in edge_rows(run, c):
                    connection.execute(_edges.insert().values(row))
                _log(connection, run, StoredEvent("asked", c.key, seconds, str(generation)))
            for key in gone:
                _log(connection, run, StoredEvent("withdrawn", key, seconds, str(generation)))

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """What became of a candidate. context: digest of all that the outcome depends on."""
        with self._transaction() as connection:
            connection.execute(
                _evaluations.insert().values(
                    run=run, key=key, context=context, outcome=to_json(outcome), at=time.time()
                )
            )
            _log(connection, run, StoredEvent("evaluated", key, seconds, ""))

    def log(self, run: str, event: StoredEvent) -> None:
        """Adds a line to a run's log."""
        with self._transaction() as connection:
            _log(connection, run, event)

    def cached(self, key: str, context: str) -> Evaluated | None:
        """What became of a candidate in any run, in the same context; the latest."""
        here = (_evaluations.c.key == key) & (_evaluations.c.context == context)
        query = sql.select(_evaluations.c.outcome).where(here).order_by(_evaluations.c.at.desc())
        with self._transaction() as connection:
            text = connection.scalars(query.limit(1)).first()
        return None if text is None else from_json(text)

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Keeps an exchange with a model; one of the same digest and rank is replaced."""
        here = (_exchanges.c.digest == exchange.digest) & (_exchanges.c.rank == exchange.rank)
        with self._transaction() as connection:
            connection.execute(_exchanges.delete().where((_exchanges.c.run == run) & here))
            connection.execute(_exchanges.insert().values(run=run, **asdict(exchange)))

    def exchanges(self, run: str) -> tuple[StoredExchange, ...]:
        """All exchanges of a run, in the order in which they ended."""
        columns = [_exchanges.c[f.name] for f in fields(StoredExchange)]
        query = sql.select(*columns).where(_exchanges.c.run == run).order_by(_exchanges.c.id)
        with self._transaction() as connection:
            return tuple(StoredExchange(*row) for row in connection.execute(query))

    def secret(self) -> str:
        """The store's own random text, made when it is first asked for."""
        with self._transaction() as connection:
            known = connection.scalar(sql.select(_secret.c.text))
            if known is None:
                known = secrets.token_hex(16)
                connection.execute(_secret.insert().values(text=known))
        return str(known)

    def runs(self) -> tuple[str, ...]:
        """The names of all runs, the latest first."""
        with self._transaction() as connection:
            return tuple(
                connection.scalars(sql.select(_runs.c.id).order_by(_runs.c.started.desc()))
            )

    def started(self) -> dict[str, float]:
        """When each run was started, in seconds since 1970, by its name; the latest first."""
        query = sql.select(_runs.c.id, _runs.c.started).order_by(_runs.c.started.desc())
        with self._transaction() as connection:
            return {row.id: row.started for row in connection.execute(query)}

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The names of the runs of a kernel, the latest first."""
        query = sql.select(_runs.c.id).where(_runs.c.kernel == kernel)
        with self._transaction() as connection:
            return tuple(connection.scalars(query.order_by(_runs.c.started.desc())))

    def load(self, run: str) -> StoredRun:
        """A run; KernelError where there is none of that name."""
        with self._transaction() as connection:
            row = connection.execute(sql.select(_runs).where(_runs.c.id == run)).first()
            if row is not None:
                return StoredRun(
                    run=run,
                    settings=settings(row.settings),
                    environment=json.loads(row.environment),
                    generations=_generations(connection, run),
                    outcomes=_outcomes(connection, run),
                    events=_log_of(connection, run),
                )
        known = ", ".join(self.runs()[:8])
        raise KernelError(
            f"the store has no run `{run}`",
            where=self.url,
            allowed=known,
            hint="name another run, or another store with --store",
        )

    def close(self) -> None:
        """Lets go of the database."""
        self._engine.dispose()

    def _open(self) -> Engine:
        try:
            url = make_url(self.url)
            if url.drivername.startswith("sqlite") and url.database not in (None, "", ":memory:"):
                Path(url.database).parent.mkdir(parents=True, exist_ok=True)
            engine = sql.create_engine(url)
        except OSError as error:
            raise self._fault(f"the store cannot be made: {error}") from error
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise self._fault(f"not a store that can be used here: {error}") from error
        if engine.dialect.name == "sqlite":
            sql.event.listen(engine, "connect", _prepare_sqlite)
            sql.event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        return engine

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise self._fault(f"the store cannot be used: {cause}") from error

    def _prepare(self, connection: Connection) -> None:
        """Makes the tables that are missing; KernelError where there are runs of another format."""
        tables = sql.inspect(connection).get_table_names()
        numbered = _format.name in tables
        found = connection.scalar(sql.select(_format.c.number)) if numbered else None
        if (
            found is None
            and "runs" in tables
            and connection.scalar(sql.select(_runs.c.id).limit(1))
        ):
            found = 1
        if found not in (None, FORMAT):
            raise KernelError(
                f"the store has runs of format {found}, which are not read any more",
                where=self.url,
                allowed=f"a new store, or one of format {FORMAT}",
                hint="move it away, or give another with --store",
            )
        _meta.create_all(connection)
        if found is None:
            connection.execute(_format.insert().values(number=FORMAT))

    def _fault(self, what: str) -> KernelError:
        return KernelError(
            what,
            where=self.url,
            allowed="a file in a folder that can be written, or a database's URL",
            hint="give another with --store",
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
    connection.execute(_events.insert().values(event_row(run, event)))


def _generations(connection: Connection, run: str) -> tuple[tuple[Candidate, ...], ...]:
    columns = (_nodes.c.generation, _nodes.c.candidate)
    query = sql.select(*columns).where(_nodes.c.run == run)
    return generations(connection.execute(query.order_by(_nodes.c.generation, _nodes.c.rank)))


def _outcomes(connection: Connection, run: str) -> dict[str, Evaluated]:
    query = sql.select(_evaluations.c.key, _evaluations.c.outcome).where(_evaluations.c.run == run)
    return {key: from_json(text) for key, text in connection.execute(query)}


def _log_of(connection: Connection, run: str) -> tuple[StoredEvent, ...]:
    columns = (_events.c.kind, _events.c.key, _events.c.seconds, _events.c.detail)
    query = sql.select(*columns).where(_events.c.run == run).order_by(_events.c.id)
    return tuple(StoredEvent(*row) for row in connection.execute(query))
