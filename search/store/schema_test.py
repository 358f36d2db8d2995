"""An older store is migrated with its runs; a newer one is refused and not changed."""

import sqlite3

import pytest
import sqlalchemy as sql
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from ir.errors import KernelError
from search.core.settings import Settings
from search.store.migrations.upgrade import config, upgrade
from search.store.schema import BASE, HEAD, META
from search.store.store import Store

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8})
OLD_RUN = ("softmax-chip-1", "softmax", "chip", SETTINGS.to_json(), "{}", 1.0)


@pytest.fixture
def old(tmp_path):
    """A database with the tables of the first revision, but no revision number."""
    file = tmp_path / "old.db"
    engine = sql.create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        command.upgrade(config(connection), BASE)
    engine.dispose()
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE alembic_version")
    return file


def _filled(file, number):
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", OLD_RUN)
        if number:
            connection.execute("INSERT INTO format VALUES (?)", (number,))
        else:
            connection.execute("DROP TABLE format")


def _tables(file):
    with sqlite3.connect(file) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def test_the_latest_migration_is_the_head():
    assert ScriptDirectory.from_config(config()).get_heads() == [HEAD]


def test_migrations_make_the_tables_of_a_new_store():
    engine = sql.create_engine("sqlite://")
    with engine.begin() as connection:
        upgrade(connection)
        assert compare_metadata(MigrationContext.configure(connection), META) == []


def test_a_store_with_a_format_is_brought_up_to_date(old):
    _filled(old, 2)
    store = Store(str(old))
    assert store.resume(OLD_RUN[0]).settings == SETTINGS
    assert store.start(SETTINGS, {}) == "softmax-chip-2"
    assert "format" not in _tables(old)
    assert Store(str(old)).runs() == ("softmax-chip-2", "softmax-chip-1")


def test_a_store_without_runs_is_taken_whatever_its_format(old):
    with sqlite3.connect(old) as connection:
        connection.execute("DROP TABLE format")
    store = Store(str(old))
    assert store.load(store.start(SETTINGS, {})).settings == SETTINGS


@pytest.mark.parametrize("number", [None, 1])
def test_runs_of_an_earlier_format_are_refused_and_stay(old, number):
    _filled(old, number)
    before = _tables(old)
    with pytest.raises(KernelError, match="runs of format 1") as caught:
        Store(str(old))
    assert caught.value.where == str(old) and "--store" in caught.value.hint
    assert _tables(old) == before


def test_a_store_of_a_later_version_is_refused(tmp_path):
    file = tmp_path / "new.db"
    Store(str(file)).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
    with pytest.raises(KernelError, match="revision 0099, which a later version"):
        Store(str(file))


def test_a_migration_that_fails_leaves_the_store_as_it_was(old):
    _filled(old, 2)
    with sqlite3.connect(old) as connection:
        connection.execute("CREATE TABLE claims (other TEXT)")
    before = _tables(old)
    with pytest.raises(KernelError, match="the store cannot be used"):
        Store(str(old))
    assert _tables(old) == before
