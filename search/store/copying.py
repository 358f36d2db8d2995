"""Copies a whole store to another place: a file becomes a database on a server, and back.

The copy is made in one transaction, of a file beside the new one or of an empty database, so that it is
there whole or not at all. Rows are copied as they are, with their large texts in the place of references
to artefacts: the copy needs nothing but itself. Not copied is who works on which run, and on
which candidate: nobody works on a copy. A store with a run that somebody works on is not copied.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from ir.errors import KernelError
from search.store.address import SQLITE, address_of
from search.store.artefacts import whole_row
from search.store.holder import holder_of
from search.store.jobs import lock
from search.store.schema import (
    CLAIMS,
    EDGES,
    EVALUATIONS,
    EVENTS,
    EXCHANGES,
    JOB_CLAIMS,
    JOBS,
    LESSONS,
    NODES,
    ROUNDS,
    RUNS,
    SECRET,
)
from search.store.store import Store

# In the order in which they are copied: a row's run, or job, comes before it.
TABLES = (SECRET, RUNS, NODES, EDGES, EVALUATIONS, EVENTS, EXCHANGES, JOBS, ROUNDS)
ROWS = 1000  # that are read and written at a time
PROGRESS = 20_000  # rows of a table, after which it is said how far it is


Lessons = Mapping[str, str]  # texts by name


def copy_store(
    source: str,
    to: str,
    *,
    lessons: Lessons,
    refuse: Callable[[Lessons], None],
    keep: Callable[[Lessons], None],
    say: Callable[[str], None],
    artefacts: str | None = None,
) -> dict[str, int]:
    """Copies a store; the number of rows by table. KernelError where there is something at the new
    place, and where a process works on a run.

    lessons: those of a store that is a file, which has none in it.  refuse, keep: for a new store
    that is a file, say whether lessons can be kept, and keep them.  say: is told how far it is.
    artefacts: where those of the store lie; None for where it has them.
    """
    place = address_of(to)
    with ExitStack() as stack:
        folder: Path | None = None
        new_file = Path(place.url.removeprefix("sqlite:///"))
        if place.kind == SQLITE:
            folder = _beside(new_file, stack)
        old = stack.enter_context(closing(Store(source, artefacts=artefacts)))
        found = old.lessons() if old.database.is_shared else dict(lessons)
        if folder is None:
            new = stack.enter_context(closing(Store(to)))
            return _copied(old, new, found, say)
        refuse(found)
        part = folder / "new.db"
        with closing(Store(str(part))) as new:
            rows = _copied(old, new, {}, say)
        keep(found)
        part.rename(new_file)
    return rows | {LESSONS.name: len(found)}


def _beside(new: Path, stack: ExitStack) -> Path:
    """A folder for the time of the copy."""
    if new.exists():
        raise _taken(f"`{new}` is there already", "name a file that is not there")
    new.parent.mkdir(parents=True, exist_ok=True)
    made = tempfile.TemporaryDirectory(prefix=".copy-", dir=new.parent)
    return Path(stack.enter_context(made))


def _copied(old: Store, new: Store, lessons: Lessons, say: Callable[[str], None]) -> dict[str, int]:
    with ExitStack() as stack:
        reading = stack.enter_context(old.database.snapshot())
        require_idle(old, reading)
        writing = stack.enter_context(new.transaction())
        new.database.alone(writing)  # no run may be started there now
        _require_empty(new, writing)
        rows = {table.name: _table(table, old, reading, writing, say) for table in TABLES}
        for table in TABLES:
            found = writing.scalar(sql.select(sql.func.count()).select_from(table))
            if found != rows[table.name]:
                raise AssertionError(f"{found} rows of {table.name}, and not {rows[table.name]}")
        if new.database.is_shared:
            _number_on(writing)
        for name, text in lessons.items():
            writing.execute(LESSONS.insert().values(name=name, text=text))
    return rows | {LESSONS.name: len(lessons)}


def require_idle(old: Store, reading: Connection) -> None:
    """KernelError where a process works on a run or a job of a store."""
    for row in reading.execute(sql.select(CLAIMS)).all():
        held = holder_of(row.holder)
        if old.database.is_held(reading, row.run, held, time.time() - row.at):
            raise KernelError(
                f"{held} works on run `{row.run}`",
                where=old.url,
                hint="wait until it has ended, or stop it",
            )
    for row in reading.execute(sql.select(JOB_CLAIMS)).all():
        held = holder_of(row.holder)
        if old.database.is_held(reading, lock(row.job), held, time.time() - row.at):
            raise KernelError(
                f"{held} works on job `{row.job}`",
                where=old.url,
                hint="wait until it has ended, or stop it",
            )


def _require_empty(new: Store, writing: Connection) -> None:
    for table in (*TABLES, LESSONS):
        if writing.execute(sql.select(table).limit(1)).first() is not None:
            raise _taken(
                f"`{new.url}` holds a store already: there are rows in `{table.name}`",
                "name a database that is empty",
            )


def _taken(what: str, hint: str) -> KernelError:
    return KernelError(what, where="--copy-store", hint=hint)


def _table(
    table: sql.Table,
    old: Store,
    reading: Connection,
    writing: Connection,
    say: Callable[[str], None],
) -> int:
    """Copies the rows of a table; how many."""
    total = reading.scalar(sql.select(sql.func.count()).select_from(table))
    done = 0
    for rows in _rows(table, old, reading):
        writing.execute(table.insert(), rows)
        done += len(rows)
        if done == total or done // PROGRESS > (done - len(rows)) // PROGRESS:
            say(f"{table.name}: {done} of {total} rows")
    return done


def _rows(table: sql.Table, old: Store, reading: Connection) -> Iterator[list[dict[str, Any]]]:
    query = sql.select(table).order_by(*table.primary_key.columns)
    found = reading.execution_options(yield_per=ROWS).execute(query)
    for part in found.mappings().partitions():
        rows = [whole_row(row, old.artefacts) for row in part]
        for row in rows:
            if any(isinstance(text, str) and "\0" in text for text in row.values()):
                raise KernelError(
                    f"a row of `{table.name}` has a character that not every database takes, NUL: "
                    f"{', '.join(str(row[c.name]) for c in table.primary_key.columns)}",
                    where="--copy-store",
                )
        yield rows


def _number_on(writing: Connection) -> None:
    """New rows are numbered after those that were copied."""
    for table in (EVENTS, EXCHANGES):
        sequence = sql.func.pg_get_serial_sequence(table.name, "id")
        last = sql.select(sql.func.max(table.c.id)).scalar_subquery()
        writing.execute(
            sql.select(sql.func.setval(sequence, sql.func.coalesce(last, 1), last.is_not(None)))
        )
