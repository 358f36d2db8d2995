"""The store: all runs, nodes, edges, evaluations, exchanges and events, written before they are
used."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, from_json, to_json
from search.core.settings import Settings, settings
from search.core.stored import StoredEvent, StoredExchange, StoredRun, stem_of
from search.store.address import address_of, without_password
from search.store.artefacts import Artefacts, artefacts_at, whole_row
from search.store.database import database_at
from search.store.holder import here, holder_of
from search.store.rows import edge_rows, event_row, generations, node_row
from search.store.schema import (
    ARTEFACTS,
    CLAIMS,
    EDGES,
    EVALUATIONS,
    EVENTS,
    EXCHANGES,
    JOBS,
    LESSONS,
    NODES,
    ROUNDS,
    RUNS,
    SECRET,
    prepare,
)

DAMAGE = (ValueError, KeyError, TypeError, AttributeError)  # exceptions that damaged texts raise
APART = 1e-6  # least seconds between two writes of a process


class Store:
    """Runs in a database; see `stored.Keeper`. Each method is one transaction.

    If the connection to a server is lost, the transaction is repeated, but takes effect once: every
    write of a run renews the run's claim with the time of the write.
    """

    def __init__(
        self,
        url: str,
        say: Callable[[str], None] = lambda text: None,
        artefacts: str | None = None,
    ):
        """Opens a store.

        url: of a database, or the path of an SQLite file, which is created if missing. say: called
        when a server is lost or found again. artefacts: the place of large texts from now on, a
        folder or URL; None: the stored place, by default the rows themselves.
        """
        address = address_of(url)
        self.url = address.shown
        self.database = database_at(address, say)
        self.leases = self.database.leases()
        self._last_write = 0.0
        self._writing = threading.Lock()  # writes of a run are sequential, including repetitions
        try:
            with self.transaction() as connection:
                prepare(connection, self.url, self.database.alone)
                self.artefacts = self._artefacts(connection, artefacts)
        except KernelError:
            self.database.close()
            raise

    def start(self, chosen: Settings, environment: Mapping[str, Any]) -> str:
        """Adds a new run and returns its name."""
        stem, now = f"{chosen.kernel}-{chosen.target}-", self._now()

        def work(connection: Connection, again: bool) -> str:
            ours = (CLAIMS.c.holder == here().text) & (CLAIMS.c.at == now)
            known = connection.scalar(sql.select(CLAIMS.c.run).where(ours)) if again else None
            if known is not None:
                return str(known)
            self.database.alone(connection)
            taken: set[str] = set()
            for table in (RUNS, JOBS):  # a name belongs to one of them
                alike = table.c.id.startswith(stem, autoescape=True)
                taken |= set(connection.scalars(sql.select(table.c.id).where(alike)))
            number = next(n for n in range(1, len(taken) + 2) if f"{stem}{n}" not in taken)
            run = f"{stem}{number}"
            connection.execute(
                RUNS.insert().values(
                    id=run,
                    kernel=chosen.kernel,
                    target=chosen.target,
                    settings=chosen.to_json(),
                    environment=json.dumps(environment),
                    started=now,
                )
            )
            if chosen.job:
                _begun(connection, chosen.job, run)
            self._claim(connection, run, now)
            _log(connection, run, StoredEvent("started", "", 0.0, ""))
            return run

        return self.database.write(work)

    def asked(
        self, run: str, generation: int, candidates: Sequence[Candidate], seconds: float
    ) -> None:
        """Stores a generation before it is evaluated. Replaces a generation of the same number."""
        nodes = [
            node_row(run, generation, rank, c, self.artefacts) for rank, c in enumerate(candidates)
        ]

        def work(connection: Connection) -> None:
            here = (NODES.c.run == run) & (NODES.c.generation == generation)
            old = list(connection.scalars(sql.select(NODES.c.key).where(here)))
            new = [c.key for c in candidates]
            if old and set(old) == set(new):
                return
            gone = [k for k in old if k not in new]
            if old:
                of_old = (EDGES.c.run == run) & EDGES.c.child.in_(old)
                connection.execute(NODES.delete().where(here))
                connection.execute(EDGES.delete().where(of_old))
            edges = [row for c in candidates for row in edge_rows(run, c)]
            said = [StoredEvent("asked", key, seconds, str(generation)) for key in new]
            said += [StoredEvent("withdrawn", key, seconds, str(generation)) for key in gone]
            events = [event_row(run, event) for event in said]
            for table, rows in ((NODES, nodes), (EDGES, edges), (EVENTS, events)):
                if rows:
                    connection.execute(table.insert(), rows)

        self._write_run(run, work)

    def evaluated(
        self, run: str, key: str, context: str, outcome: Evaluated, seconds: float
    ) -> None:
        """Stores the outcome of a candidate. context: digest of everything that the outcome depends
        on."""
        row = dict(run=run, key=key, context=context, outcome=to_json(outcome), at=time.time())

        def work(connection: Connection) -> None:
            connection.execute(EVALUATIONS.insert().values(row))
            _log(connection, run, StoredEvent("evaluated", key, seconds, ""))
            if self.leases is not None:
                self.leases.end(connection, (context, key))

        self._write_run(run, work)
        if self.leases is not None:
            self.leases.forget([(context, key)])

    def log(self, run: str, event: StoredEvent) -> None:
        """Adds an entry to a run's log. After `stopped`, another process may continue the run."""
        if event.kind != "stopped":
            return self._write_run(run, lambda connection: _log(connection, run, event))

        def work(connection: Connection, again: bool) -> None:
            if again and _log_of(connection, run)[-1:] == (event,):
                return
            self._renew(connection, run, self._now())
            _log(connection, run, event)
            connection.execute(CLAIMS.delete().where(CLAIMS.c.run == run))

        with self._writing:
            self.database.write(work)
        return self.database.let_go(run)

    def cached(self, key: str, context: str) -> Evaluated | None:
        """The latest outcome of a candidate in the same context, in any run. None if there is none,
        or if its row is damaged."""
        here = (EVALUATIONS.c.key == key) & (EVALUATIONS.c.context == context)
        query = sql.select(EVALUATIONS.c.outcome).where(here).order_by(EVALUATIONS.c.at.desc())
        text = self.database.read(lambda connection: connection.scalars(query.limit(1)).first())
        try:
            return None if text is None else from_json(text)
        except DAMAGE:
            return None

    def exchanged(self, run: str, exchange: StoredExchange) -> None:
        """Stores an exchange with a model. Replaces one with the same digest and rank."""
        same = (EXCHANGES.c.digest == exchange.digest) & (EXCHANGES.c.rank == exchange.rank)
        row = asdict(exchange)
        if self.artefacts is not None:
            row |= {name: self.artefacts.kept(row[name]) for name in ("request", "reply")}

        def work(connection: Connection, again: bool) -> None:
            connection.execute(EXCHANGES.delete().where((EXCHANGES.c.run == run) & same))
            connection.execute(EXCHANGES.insert().values(run=run, **row))

        self.database.write(work)

    def exchanges(self, run: str) -> tuple[StoredExchange, ...]:
        """All exchanges of a run, in the order in which they ended."""
        columns = [EXCHANGES.c[f.name] for f in fields(StoredExchange)]
        query = sql.select(*columns).where(EXCHANGES.c.run == run).order_by(EXCHANGES.c.id)
        rows = self.database.read(lambda connection: connection.execute(query).all())
        try:
            whole = [whole_row(row._mapping, self.artefacts) for row in rows]
        except KernelError as error:
            raise _of_run(run, error) from None
        return tuple(StoredExchange(**row) for row in whole)

    def secret(self) -> str:
        """The store's random text, created on first use."""

        def work(connection: Connection, again: bool) -> str:
            self.database.alone(connection)
            known = connection.scalar(sql.select(SECRET.c.text))
            if known is None:
                known = secrets.token_hex(16)
                connection.execute(SECRET.insert().values(text=known))
            return str(known)

        return self.database.write(work)

    def runs(self) -> tuple[str, ...]:
        """The names of all runs, latest first."""
        return tuple(self.started())

    def started(self) -> dict[str, float]:
        """The start time of each run in seconds since 1970, by name, latest first."""
        query = sql.select(RUNS.c.id, RUNS.c.started).order_by(RUNS.c.started.desc())
        rows = self.database.read(lambda connection: connection.execute(query).all())
        return {row.id: row.started for row in rows}

    def runs_of(self, kernel: str) -> tuple[str, ...]:
        """The names of the runs of a kernel, latest first."""
        query = sql.select(RUNS.c.id).where(RUNS.c.kernel == kernel)
        query = query.order_by(RUNS.c.started.desc())
        return tuple(self.database.read(lambda connection: connection.scalars(query).all()))

    def runs_alike(self, kernel: str) -> tuple[str, ...]:
        """The names of runs of other networks' kernels with the same output names, latest first."""
        if not (stem := stem_of(kernel)):
            return ()
        query = sql.select(RUNS.c.id, RUNS.c.kernel).where(
            RUNS.c.kernel.startswith(stem, autoescape=True)
        )
        query = query.where(RUNS.c.kernel != kernel).order_by(RUNS.c.started.desc())
        rows = self.database.read(lambda connection: connection.execute(query).all())
        return tuple(row.id for row in rows if stem_of(row.kernel) == stem)

    def load(self, run: str) -> StoredRun:
        """A run. Raises KernelError if there is none of that name, or if its rows are damaged."""

        def work(connection: Connection) -> StoredRun | None:
            row = connection.execute(sql.select(RUNS).where(RUNS.c.id == run)).first()
            return None if row is None else self._loaded(connection, row)

        found = self.database.read(work)
        if found is None:
            raise self._unknown(run)
        return found

    def resume(self, run: str) -> StoredRun:
        """A run that this process continues. Raises KernelError as `load` does, or if another
        process works on it."""
        now = self._now()

        def work(connection: Connection, again: bool) -> bool:
            if connection.scalar(sql.select(RUNS.c.id).where(RUNS.c.id == run)) is None:
                return False
            self._claim(connection, run, now)
            return True

        if not self.database.write(work):
            raise self._unknown(run)
        return self.load(run)

    def lessons(self) -> dict[str, str]:
        """The lessons of runs in the store, by name."""
        query = sql.select(LESSONS.c.name, LESSONS.c.text).order_by(LESSONS.c.name)
        rows = self.database.read(lambda connection: connection.execute(query).all())
        return {row.name: row.text for row in rows}

    def learned(self, name: str, text: str) -> None:
        """Stores a lesson. Replaces one of the same name."""

        def work(connection: Connection, again: bool) -> None:
            connection.execute(LESSONS.delete().where(LESSONS.c.name == name))
            connection.execute(LESSONS.insert().values(name=name, text=text))

        self.database.write(work)

    def close(self) -> None:
        """Releases leases and closes the database."""
        if self.leases is not None:
            self.leases.close()
        self.database.close()

    def transaction(self) -> AbstractContextManager[Connection]:
        """A transaction without repetition. Raises KernelError if the database cannot be used."""
        return self.database.transaction()

    def _now(self) -> float:
        """The time of a write in seconds since 1970; unique in this store."""
        self._last_write = max(time.time(), self._last_write + APART)
        return self._last_write

    def _write_run(self, run: str, work: Callable[[Connection], None]) -> None:
        """Runs `work` once in a transaction, if this process works on the run."""

        def attempt(connection: Connection, again: bool) -> None:
            mine = (CLAIMS.c.run == run) & (CLAIMS.c.holder == here().text)
            if again and connection.scalar(sql.select(CLAIMS.c.at).where(mine)) == now:
                return  # only the answer of the first attempt was lost
            self._renew(connection, run, now)
            work(connection)

        with self._writing:
            now = self._now()
            self.database.write(attempt)

    def _loaded(self, connection: Connection, row: Any) -> StoredRun:
        part, run = "settings", row.id
        try:
            chosen = settings(row.settings)
            part = "environment"
            environment = json.loads(row.environment)
            part = "candidates"
            found = self._generations(connection, run)
            part = "evaluations"
            outcomes = _outcomes(connection, run)
        except DAMAGE as error:
            raise KernelError(
                f"the {part} of run `{run}` are damaged: {type(error).__name__}: {error}",
                where=self.url,
                hint=self.database.remedy,
            ) from error
        except KernelError as error:
            raise _of_run(run, error) from None
        log = _log_of(connection, run)
        return StoredRun(run, chosen, environment, found, outcomes, log)

    def _generations(self, connection: Connection, run: str) -> tuple[tuple[Candidate, ...], ...]:
        query = sql.select(NODES.c.generation, NODES.c.candidate).where(NODES.c.run == run)
        query = query.order_by(NODES.c.generation, NODES.c.rank)
        return generations((tuple(row) for row in connection.execute(query)), self.artefacts)

    def _artefacts(self, connection: Connection, given: str | None) -> Artefacts | None:
        """The artefacts of the store. Stores their place if one is given."""
        row = connection.execute(sql.select(ARTEFACTS)).first()
        if given is None:
            return None if row is None else artefacts_at(row.address, row.name)
        shown = without_password(given)
        if row is None:
            self.database.alone(connection)  # another process may do the same
            row = connection.execute(sql.select(ARTEFACTS)).first()
        if row is None:
            name = secrets.token_hex(8)
            connection.execute(ARTEFACTS.insert().values(name=name, address=shown))
        else:
            name = row.name
            connection.execute(ARTEFACTS.update().values(address=shown))
        return artefacts_at(given, name)

    def _unknown(self, run: str) -> KernelError:
        query = sql.select(JOBS.c.id).order_by(JOBS.c.started.desc()).limit(8)
        jobs = self.database.read(lambda connection: connection.scalars(query).all())
        return KernelError(
            f"the store has no run `{run}`",
            where=self.url,
            allowed=", ".join((*self.runs()[:8], *jobs)),
            hint="name another run, or another store with --store",
        )

    def _claim(self, connection: Connection, run: str, now: float) -> None:
        """Records that this process works on a run. Raises KernelError if another one does."""
        row = connection.execute(sql.select(CLAIMS).where(CLAIMS.c.run == run)).first()
        held = None if row is None else holder_of(row.holder)
        idle = 0.0 if row is None else time.time() - row.at
        if not self.database.hold(connection, run, held, idle):
            raise KernelError(
                f"{held or 'another process'} works on run `{run}`",
                where=self.url,
                hint="wait until it has ended, or stop it",
            )
        connection.execute(CLAIMS.delete().where(CLAIMS.c.run == run))
        connection.execute(CLAIMS.insert().values(run=run, holder=here().text, at=now))

    def _renew(self, connection: Connection, run: str, now: float) -> None:
        """Renews this process's claim on a run. Raises KernelError if another process has taken it
        over."""
        own = (CLAIMS.c.run == run) & (CLAIMS.c.holder == here().text)
        if not connection.execute(CLAIMS.update().where(own).values(at=now)).rowcount:
            raise KernelError(
                f"run `{run}` is not this process's any more: another one has gone on with it",
                where=self.url,
                hint=f"see it with --show={run}",
            )


def _begun(connection: Connection, place: str, run: str) -> None:
    """Records the run of a job's search. place: as in `Settings.job`."""
    job, _, number = place.rpartition("/")
    of_round = (ROUNDS.c.job == job) & (ROUNDS.c.number == int(number)) & ROUNDS.c.run.is_(None)
    connection.execute(ROUNDS.update().where(of_round).values(run=run))


def _log(connection: Connection, run: str, event: StoredEvent) -> None:
    connection.execute(EVENTS.insert().values(event_row(run, event)))


def _of_run(run: str, error: KernelError) -> KernelError:
    """An error of an artefact, as an error of the run that needs it."""
    what = f"run `{run}` cannot be read: {error.what}"
    return KernelError(what, where=error.where, allowed=error.allowed, hint=error.hint)


def _outcomes(connection: Connection, run: str) -> dict[str, Evaluated]:
    query = sql.select(EVALUATIONS.c.key, EVALUATIONS.c.outcome).where(EVALUATIONS.c.run == run)
    return {key: from_json(text) for key, text in connection.execute(query)}


def _log_of(connection: Connection, run: str) -> tuple[StoredEvent, ...]:
    columns = (EVENTS.c.kind, EVENTS.c.key, EVENTS.c.seconds, EVENTS.c.detail)
    query = sql.select(*columns).where(EVENTS.c.run == run).order_by(EVENTS.c.id)
    return tuple(StoredEvent(*row) for row in connection.execute(query))
