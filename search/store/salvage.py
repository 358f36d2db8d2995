"""Salvage: copies the readable part of a damaged store to a new one.

The damaged file is not written. Tables are read from both ends, so a damaged page loses only its
own rows. A row counts as readable if a search could use it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from ir.errors import KernelError
from search.core.candidate import candidate
from search.core.evaluation import from_json
from search.core.settings import settings
from search.store.artefacts import is_reference
from search.store.schema import (
    ARTEFACTS,
    EDGES,
    EVALUATIONS,
    EVENTS,
    EXCHANGES,
    JOBS,
    NODES,
    ROUNDS,
    RUNS,
    SECRET,
    revision,
)
from search.store.store import DAMAGE, Store

Row = dict[str, Any]
Reads = Callable[[Row], object]  # raises an exception of DAMAGE if a row's texts are damaged


def _run(row: Row) -> object:
    return settings(row["settings"]), json.loads(row["environment"]).items()


def _exchange(row: Row) -> object:
    return is_reference(row["request"]) or json.loads(row["request"]), row["seconds"] + 0.0


# In the order of copying: a run comes before the rows that refer to it.
TABLES: tuple[tuple[sql.Table, Reads], ...] = (
    (SECRET, lambda row: row["text"] + ""),
    (ARTEFACTS, lambda row: row["name"] + row["address"]),
    (RUNS, _run),
    (NODES, lambda row: candidate(json.loads(row["candidate"]))),
    (EDGES, lambda row: None),
    (EVALUATIONS, lambda row: from_json(row["outcome"])),
    (EVENTS, lambda row: row["seconds"] + 0.0),
    (EXCHANGES, _exchange),
    (JOBS, lambda row: (json.loads(row["text"])["searches"], row["started"] + 0.0)),
    (ROUNDS, lambda row: row["number"] + row["search"] + row["evaluations"]),
)


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The result of a salvage."""

    saved: Mapping[str, int]  # number of copied rows by table
    lost: Mapping[str, int]  # number of rows by table that are damaged, or whose run is
    unread: tuple[str, ...]  # tables with unreadable pages, whose contents are unknown
    why: tuple[str, ...] = ()  # the first damage of each table

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(table.name for table, _ in TABLES)


def salvage(damaged: Path, new: Path) -> Salvaged:
    """Copies a store. Raises KernelError if there is nothing to read, or if `new` exists."""
    if new.exists():
        raise KernelError(
            f"`{new}` already exists", where="--salvage", hint="name a file that does not exist"
        )
    if not damaged.is_file():
        raise KernelError(
            f"`{damaged}` is no file",
            where="--store",
            allowed="the SQLite file of a store",
            hint="name the damaged store with --store",
        )
    with tempfile.TemporaryDirectory(prefix=".salvage-", dir=new.parent) as name:
        folder = Path(name)
        part = folder / "new.db"
        try:
            found = _copied(_set_aside(damaged, folder), part, str(damaged))
        except sqlite3.DatabaseError as error:
            raise KernelError(f"nothing of it can be read: {error}", where=str(damaged)) from error
        part.rename(new)
    return found


def _set_aside(damaged: Path, folder: Path) -> Path:
    """A copy of a database with its log, because SQLite writes files next to a database when it
    reads the log."""
    for ending in ("", "-wal"):
        beside = damaged.with_name(damaged.name + ending)
        if beside.is_file():
            shutil.copyfile(beside, folder / f"old.db{ending}")
    return folder / "old.db"


def _copied(old: Path, part: Path, where: str) -> Salvaged:
    _require_readable(old, where)
    saved: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    unread: list[str] = []
    why: dict[str, str] = {}
    runs: set[str] = set()
    store = Store(str(part))
    with closing(store), closing(sqlite3.connect(old)) as source:
        for table, read in TABLES:
            with store.transaction() as connection:
                for row in _rows(source, table.name, unread):
                    try:
                        read(row)
                        if row.get("run") is not None and row["run"] not in runs:
                            raise KeyError(f"run `{row['run']}`")
                        with connection.begin_nested():
                            connection.execute(table.insert().values(row))
                    except (*DAMAGE, sql.exc.SQLAlchemyError) as error:
                        lost[table.name] += 1
                        why.setdefault(table.name, f"{table.name}: {type(error).__name__}: {error}")
                        continue
                    saved[table.name] += 1
                    if table is RUNS:
                        runs.add(row["id"])
    return Salvaged(dict(saved), dict(lost), tuple(unread), tuple(why.values()))


def _require_readable(old: Path, where: str) -> None:
    """Raises KernelError for a store in a format that is no longer supported."""
    engine = sql.create_engine(sql.URL.create("sqlite", database=str(old)))
    try:
        with engine.begin() as connection:
            if revision(connection, where) is None:
                raise KernelError(f"`{where}` holds no runs", where="--store")
    except sql.exc.SQLAlchemyError as error:
        if isinstance(cause := getattr(error, "orig", None), sqlite3.DatabaseError):
            raise cause from error
        raise
    finally:
        engine.dispose()


def _rows(source: sqlite3.Connection, table: str, unread: list[str]) -> Iterator[Row]:
    """The readable rows of a table. unread: gets the table's name if other rows are unreadable."""
    known = "SELECT 1 FROM sqlite_master WHERE name = ?"
    if source.execute(known, (table,)).fetchone() is None:
        return  # a store of an earlier version
    last = 0
    for order in ("ASC", "DESC"):
        try:
            query = (
                f'SELECT rowid, * FROM "{table}" NOT INDEXED WHERE rowid > ? ORDER BY rowid {order}'
            )
            cursor = source.execute(query, (last,))
            names = [column[0] for column in cursor.description][1:]
            for number, *values in cursor:
                if order == "ASC":
                    last = number
                yield dict(zip(names, values, strict=True))
            return
        except sqlite3.DatabaseError:
            unread += [table] if table not in unread else []
