"""Jobs in a store: their data, their rounds, and the process that works on each."""

from __future__ import annotations

import time

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from ir.errors import KernelError
from search.core.stored_job import StoredJob, StoredRound
from search.store.holder import here, holder_of
from search.store.schema import JOB_CLAIMS, JOBS, ROUNDS, RUNS
from search.store.store import Store


class StoredJobs:
    """The jobs of a store. Each method is one transaction, which is repeated if the connection to a
    server is lost. All are idempotent."""

    def __init__(self, store: Store):
        self._store = store
        self._database = store.database

    def add(self, stem: str, text: str) -> str:
        """Adds a new job, which this process works on, and returns its name."""
        now = time.time()

        def work(connection: Connection, again: bool) -> str:
            ours = (JOB_CLAIMS.c.holder == here().text) & (JOB_CLAIMS.c.at == now)
            known = connection.scalar(sql.select(JOB_CLAIMS.c.job).where(ours)) if again else None
            if known is None:
                self._database.alone(connection)
                taken = {
                    name
                    for table in (JOBS, RUNS)
                    for name in connection.scalars(sql.select(table.c.id))
                }
                known = next(
                    n for k in range(1, len(taken) + 2) if (n := f"{stem}-{k}") not in taken
                )
                connection.execute(JOBS.insert().values(id=known, text=text, started=now))
            self._claim(connection, str(known), now)
            return str(known)

        return self._database.write(work)

    def names(self) -> tuple[str, ...]:
        """The names of all jobs, latest first."""
        query = sql.select(JOBS.c.id).order_by(JOBS.c.started.desc())
        return tuple(self._database.read(lambda connection: connection.scalars(query).all()))

    def load(self, job: str) -> StoredJob:
        """A job. Raises KernelError if there is none of that name."""
        of_job = sql.select(ROUNDS).where(ROUNDS.c.job == job).order_by(ROUNDS.c.number)

        def work(connection: Connection) -> StoredJob | None:
            row = connection.execute(sql.select(JOBS).where(JOBS.c.id == job)).first()
            if row is None:
                return None
            rounds = [
                StoredRound(r.number, r.search, r.evaluations, r.run or "", r.ended, r.over)
                for r in connection.execute(of_job)
            ]
            return StoredJob(row.id, row.text, row.started, tuple(rounds))

        found = self._database.read(work)
        if found is None:
            raise KernelError(
                f"the store has no job `{job}`",
                where=self._store.url,
                allowed=", ".join(self.names()[:8]),
                hint="name another job, or another store with --store",
            )
        return found

    def resume(self, job: str) -> StoredJob:
        """A job that this process continues. Raises KernelError as `load` does, or if another
        process works on it."""

        def work(connection: Connection, again: bool) -> None:
            if connection.scalar(sql.select(JOBS.c.id).where(JOBS.c.id == job)) is not None:
                self._claim(connection, job, time.time())

        self._database.write(work)
        return self.load(job)

    def begin(self, job: str, begun: StoredRound) -> None:
        """Stores a round before it begins."""
        row = dict(job=job, number=begun.number, search=begun.search, run=begun.run or None)
        row |= dict(evaluations=begun.evaluations, ended="", over=False)
        same = (ROUNDS.c.job == job) & (ROUNDS.c.number == begun.number)

        def work(connection: Connection, again: bool) -> None:
            self._renew(connection, job)
            connection.execute(ROUNDS.delete().where(same))
            connection.execute(ROUNDS.insert().values(row))

        self._database.write(work)

    def end(self, job: str, number: int, ended: str, over: bool) -> None:
        """Stores the end of a round."""
        same = (ROUNDS.c.job == job) & (ROUNDS.c.number == number)

        def work(connection: Connection, again: bool) -> None:
            self._renew(connection, job)
            connection.execute(ROUNDS.update().where(same).values(ended=ended, over=over))

        self._database.write(work)

    def let_go(self, job: str) -> None:
        """Ends this process's work on the job."""
        ours = (JOB_CLAIMS.c.job == job) & (JOB_CLAIMS.c.holder == here().text)
        self._database.write(
            lambda connection, again: connection.execute(JOB_CLAIMS.delete().where(ours))
        )
        self._database.let_go(lock(job))

    def _claim(self, connection: Connection, job: str, now: float) -> None:
        """Records that this process works on a job. Raises KernelError if another one does."""
        row = connection.execute(sql.select(JOB_CLAIMS).where(JOB_CLAIMS.c.job == job)).first()
        held = None if row is None else holder_of(row.holder)
        idle = 0.0 if row is None else time.time() - row.at
        if not self._database.hold(connection, lock(job), held, idle):
            raise KernelError(
                f"{held or 'another process'} works on job `{job}`",
                where=self._store.url,
                hint="wait until it has ended, or stop it",
            )
        connection.execute(JOB_CLAIMS.delete().where(JOB_CLAIMS.c.job == job))
        connection.execute(JOB_CLAIMS.insert().values(job=job, holder=here().text, at=now))

    def _renew(self, connection: Connection, job: str) -> None:
        """Renews this process's claim on a job. Raises KernelError if another process has taken
        it."""
        ours = (JOB_CLAIMS.c.job == job) & (JOB_CLAIMS.c.holder == here().text)
        if not connection.execute(JOB_CLAIMS.update().where(ours).values(at=time.time())).rowcount:
            raise KernelError(
                f"job `{job}` is not this process's any more: another one has gone on with it",
                where=self._store.url,
            )


def lock(job: str) -> str:
    """The name of a job's lock in a database; no run has this name."""
    return f"job {job}"
