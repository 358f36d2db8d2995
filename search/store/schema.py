"""The schema of a store: its tables, its revision, and the migration of older stores.

Each change of a table is a file in `migrations/versions/`, which Alembic applies. A new store gets
the current tables at once, so only older stores need Alembic.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from ir.errors import KernelError

HEAD = "0005"  # the latest of migrations/versions
BASE = "0001"  # the revision of stores that have a format number and no revision
FORMAT = 2  # their format number; in format 1, texts have verbs with retired names

META = sql.MetaData()
RUNS = sql.Table(
    "runs",
    META,
    sql.Column("id", sql.String, primary_key=True),
    sql.Column("kernel", sql.String, nullable=False),
    sql.Column("target", sql.String, nullable=False),
    sql.Column("settings", sql.Text, nullable=False),
    sql.Column("environment", sql.Text, nullable=False),
    sql.Column("started", sql.Float, nullable=False),
)
NODES = sql.Table(
    "nodes",
    META,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("key", sql.String, primary_key=True),
    sql.Column("generation", sql.Integer, nullable=False),
    sql.Column("rank", sql.Integer, nullable=False),
    sql.Column("candidate", sql.Text, nullable=False),
)
EDGES = sql.Table(
    "edges",
    META,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("child", sql.String, primary_key=True),
    sql.Column("rank", sql.Integer, primary_key=True),
    sql.Column("parent", sql.String, nullable=False),
    sql.Column("operator", sql.String, nullable=False),
    sql.Column("note", sql.Text, nullable=False),
)
EVALUATIONS = sql.Table(
    "evaluations",
    META,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("key", sql.String, primary_key=True, index=True),
    sql.Column("context", sql.String, nullable=False),
    sql.Column("outcome", sql.Text, nullable=False),
    sql.Column("at", sql.Float, nullable=False),
)
EVENTS = sql.Table(
    "events",
    META,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("run", sql.ForeignKey("runs.id"), nullable=False, index=True),
    sql.Column("kind", sql.String, nullable=False),
    sql.Column("key", sql.String, nullable=False, default=""),
    sql.Column("seconds", sql.Float, nullable=False),
    sql.Column("detail", sql.Text, nullable=False, default=""),
)
EXCHANGES = sql.Table(
    "exchanges",
    META,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("run", sql.ForeignKey("runs.id"), nullable=False),
    sql.Column("digest", sql.String, nullable=False),
    sql.Column("rank", sql.Integer, nullable=False),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("reply", sql.Text, nullable=False),
    sql.Column("seconds", sql.Float, nullable=False),
    sql.UniqueConstraint("run", "digest", "rank"),
)
# The store's random text, from which the inputs of checks are drawn.
SECRET = sql.Table("secret", META, sql.Column("text", sql.String, primary_key=True))
# The process that works on a run, and the time of its last write. A run that has stopped has no
# row.
CLAIMS = sql.Table(
    "claims",
    META,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("holder", sql.Text, nullable=False),
    sql.Column("at", sql.Float, nullable=False),
)
# Candidates that are being evaluated, in a store that several machines share: the holder, and the
# time until which the row is valid without an extension, in the server's seconds since 1970.
LEASES = sql.Table(
    "leases",
    META,
    sql.Column("context", sql.String, primary_key=True),
    sql.Column("key", sql.String, primary_key=True),
    sql.Column("holder", sql.String, nullable=False),
    sql.Column("until", sql.Float, nullable=False),
)
# Lessons of runs, as the texts of skill files. Those of a store in a file are in a folder next to
# it.
LESSONS = sql.Table(
    "lessons",
    META,
    sql.Column("name", sql.String, primary_key=True),
    sql.Column("text", sql.Text, nullable=False),
)
# Jobs: searches with one budget, as JSON.
JOBS = sql.Table(
    "jobs",
    META,
    sql.Column("id", sql.String, primary_key=True),
    sql.Column("text", sql.Text, nullable=False),
    sql.Column("started", sql.Float, nullable=False),
)
# The process that works on a job, as for runs.
JOB_CLAIMS = sql.Table(
    "job_claims",
    META,
    sql.Column("job", sql.ForeignKey("jobs.id"), primary_key=True),
    sql.Column("holder", sql.Text, nullable=False),
    sql.Column("at", sql.Float, nullable=False),
)
# Rounds of a job: the total evaluations of the search at the end of the round, and why the round
# ended; empty while it runs. The run is unknown until the search has started.
ROUNDS = sql.Table(
    "rounds",
    META,
    sql.Column("job", sql.ForeignKey("jobs.id"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True),
    sql.Column("search", sql.Integer, nullable=False),
    sql.Column("evaluations", sql.Integer, nullable=False),
    sql.Column("run", sql.ForeignKey("runs.id"), nullable=True),
    sql.Column("ended", sql.Text, nullable=False),
    sql.Column("over", sql.Boolean, nullable=False),
)
# The place of large texts outside of rows: its address, and the name of this store's folder there.
ARTEFACTS = sql.Table(
    "artefacts",
    META,
    sql.Column("name", sql.String, primary_key=True),
    sql.Column("address", sql.Text, nullable=False),
)


def prepare(
    connection: Connection, where: str, alone: Callable[[Connection], None] = lambda c: None
) -> None:
    """Migrates a database to the latest revision, in the connection's transaction. Raises
    KernelError if that is impossible.

    alone: prevents other processes from doing the same.
    """
    if revision(connection, where) == HEAD:
        return
    alone(connection)
    found = revision(connection, where)
    if found == HEAD:
        return
    if found is None:
        META.create_all(connection)
        _stamp(connection, HEAD)
        return
    if not found.isdecimal() or found > HEAD:
        raise KernelError(
            f"the store is of revision {found}, which a later version of this program made",
            where=where,
            allowed=f"a new store, or one up to revision {HEAD}",
            hint="use that version, or give another store with --store",
        )
    _migrate(connection, where)


def revision(connection: Connection, where: str) -> str | None:
    """The revision of a database; None if it has no tables of a store. Raises KernelError if its
    runs are in an older format than the first revision."""
    tables = sql.inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.scalar(sql.text("SELECT version_num FROM alembic_version"))
    if RUNS.name not in tables:
        return None
    number = None
    if "format" in tables:
        number = connection.scalar(sql.text("SELECT number FROM format"))
    elif connection.scalar(sql.select(RUNS.c.id).limit(1)) is None:
        number = FORMAT  # a store without runs has no old texts
    if number != FORMAT:
        raise KernelError(
            f"the store has runs of format {number or 1}, which are no longer supported",
            where=where,
            allowed=f"a new store, or one of format {FORMAT} or later",
            hint="move it away, or give another with --store",
        )
    return BASE


def _migrate(connection: Connection, where: str) -> None:
    try:
        from search.store.migrations.upgrade import upgrade
    except ImportError as error:
        raise KernelError(
            "the store is of an earlier version, and the Python package `alembic` is not installed "
            "here: it brings stores up to date",
            where=where,
            hint="install it, or give another store with --store",
        ) from error
    if not sql.inspect(connection).has_table("alembic_version"):
        _stamp(connection, BASE)
    upgrade(connection)


def _stamp(connection: Connection, number: str) -> None:
    """Records a revision as Alembic does."""
    connection.execute(
        sql.text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
            "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
    )
    connection.execute(sql.text("INSERT INTO alembic_version VALUES (:n)"), {"n": number})
