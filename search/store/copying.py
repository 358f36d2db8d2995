"""Copies a whole store to another place: from a file to a database on a server, or back.

The copy is atomic: one transaction on a temporary file next to the new one, or on an empty
database. Rows are copied unchanged, except that large texts replace references to artefacts, so the
copy is self-contained. Claims and leases are not copied, because nobody works on a copy. A store is
not copied while a process works on a run.
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

# In the order of copying: a run or job comes before the rows that refer to it.
TABLES = (SECRET, RUNS, NODES, EDGES, EVALUATIONS, EVENTS, EXCHANGES, JOBS, ROUNDS)
ROWS = 1000  # rows that are read and written at a time
PROGRESS = 20_000  # rows of a table between progress lines


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
    """Copies a store. Returns the number of rows by table.

    Raises KernelError if there is something at the new place, or if a process works on a run.

    lessons: those of a store in a file, which are not in the file. refuse, keep: for a new store in
    a file: check whether lessons can be kept, and keep them. say: called with progress lines.
    artefacts: the place of the store's artefacts; None: the stored place.
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
    """A temporary folder for the copy."""
    if new.exists():
        raise _taken(f"`{new}` already exists", "name a file that does not exist")
    new.parent.mkdir(parents=True, exist_ok=True)
    made = tempfile.TemporaryDirectory(prefix=".copy-", dir=new.parent)
    return Path(stack.enter_context(made))


def _copied(old: Store, new: Store, lessons: Lessons, say: Callable[[str], None]) -> dict[str, int]:
    with ExitStack() as stack:
        reading = stack.enter_context(old.database.snapshot())
        require_idle(old, reading)
        writing = stack.enter_context(new.transaction())
        new.database.alone(writing)  # prevents new runs in the new store
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
    """Raises KernelError if a process works on a run or a job of a store."""
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
    """Copies the rows of a table. Returns their number."""
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
    """Makes the numbers of new rows start after those of the copied ones."""
    for table in (EVENTS, EXCHANGES):
        sequence = sql.func.pg_get_serial_sequence(table.name, "id")
        last = sql.select(sql.func.max(table.c.id)).scalar_subquery()
        writing.execute(
            sql.select(sql.func.setval(sequence, sql.func.coalesce(last, 1), last.is_not(None)))
        )
