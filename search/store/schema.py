"""The schema of a store: its tables, its revision, and how an older store is brought up to date.

Each change of a table is a file in `migrations/versions/`, which Alembic applies. A new store gets
today's tables at once, so Alembic is only needed for an older one.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from ir.errors import KernelError

HEAD = "0005"  # the latest of migrations/versions
BASE = "0001"  # that of stores which say a format and no revision
FORMAT = 2  # what such stores say; in those of format 1, texts have verbs under retired words

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
# The store's own random text, of which the inputs of checks are drawn.
SECRET = sql.Table("secret", META, sql.Column("text", sql.String, primary_key=True))
# Which process works on a run, and when it last wrote. A run that has stopped has no row.
CLAIMS = sql.Table(
    "claims",
    META,
    sql.Column("run", sql.ForeignKey("runs.id"), primary_key=True),
    sql.Column("holder", sql.Text, nullable=False),
    sql.Column("at", sql.Float, nullable=False),
)
# Candidates that are being evaluated in a store that several machines share: by which holder, and until
# when the row counts though nothing is heard of it, in the server's seconds since 1970.
LEASES = sql.Table(
    "leases",
    META,
    sql.Column("context", sql.String, primary_key=True),
    sql.Column("key", sql.String, primary_key=True),
    sql.Column("holder", sql.String, nullable=False),
    sql.Column("until", sql.Float, nullable=False),
)
# Lessons of runs, as the texts of skill files. Those of a store in a file lie in a folder beside it.
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
# Which process works on a job, as for runs.
JOB_CLAIMS = sql.Table(
    "job_claims",
    META,
    sql.Column("job", sql.ForeignKey("jobs.id"), primary_key=True),
    sql.Column("holder", sql.Text, nullable=False),
    sql.Column("at", sql.Float, nullable=False),
)
# Rounds of a job: how many evaluations its search had in all when the round was to end, and why it
# ended; empty while it goes on. The run is unknown until the search has started.
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
# Where large texts lie instead of in rows: the address, and the name of this store's own folder there.
ARTEFACTS = sql.Table(
    "artefacts",
    META,
    sql.Column("name", sql.String, primary_key=True),
    sql.Column("address", sql.Text, nullable=False),
)


def prepare(
    connection: Connection, where: str, alone: Callable[[Connection], None] = lambda c: None
) -> None:
    """Brings a database to the latest revision, in the transaction of the connection; KernelError
    where that cannot be. alone: keeps others from doing the same."""
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
    """The revision of a database, None where it has no tables of a store; KernelError where there
    are runs of a format before all revisions."""
    tables = sql.inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.scalar(sql.text("SELECT version_num FROM alembic_version"))
    if RUNS.name not in tables:
        return None
    number = None
    if "format" in tables:
        number = connection.scalar(sql.text("SELECT number FROM format"))
    elif connection.scalar(sql.select(RUNS.c.id).limit(1)) is None:
        number = FORMAT  # without runs there are no texts
    if number != FORMAT:
        raise KernelError(
            f"the store has runs of format {number or 1}, which are not read any more",
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
    """Notes a revision as Alembic does."""
    connection.execute(
        sql.text(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
            "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
        )
    )
    connection.execute(sql.text("INSERT INTO alembic_version VALUES (:n)"), {"n": number})
