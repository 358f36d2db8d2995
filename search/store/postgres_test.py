"""PostgreSQL without a server: the driver is optional, and transactions are repeated."""

import os
import subprocess
import sys

import pytest
import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from ir.errors import KernelError
from search.store import postgres
from search.store.address import address_of
from search.store.postgres import Postgres
from search.store.schema import META
from search.store.store import Store
from testing.cli.beginnings import hiding

SECRET = "secret/word"
NOWHERE = "postgresql://user:secret%2Fword@127.0.0.1:1/db"


class _Fault(Exception):
    """As the driver's: with the state that the server gave, if one did."""

    def __init__(self, state):
        super().__init__(f"for user, with {SECRET}")
        self.sqlstate = state


def _lost(state=None):
    return sql.exc.OperationalError("UPDATE", {}, _Fault(state))


@pytest.fixture
def database(monkeypatch):
    """A database that is never connected to, and what it says."""
    said = []
    found = Postgres(address_of(NOWHERE), said.append)
    time = [100.0]
    monkeypatch.setattr(postgres.time, "monotonic", lambda: time[0])
    monkeypatch.setattr(postgres.time, "sleep", lambda s: time.__setitem__(0, time[0] + s))
    yield found, said, time
    found.close()


def _failing(times, error, given):
    def attempt(again):
        given.append(again)
        if len(given) <= times:
            raise error
        return "done"

    return attempt


@pytest.mark.parametrize("state", [None, "08006", "57P01", "57P03", "40001", "40P01", "53300"])
def test_what_passes_is_tried_again_and_said(database, state):
    found, said, _ = database
    given = []
    assert found._tried(_failing(20, _lost(state), given)) == "done"
    assert given == [False] + 20 * [True]
    assert said == [
        "the store's server is lost; trying again for 120 s",
        "the store's server is there again",
    ]


def test_what_passes_in_a_moment_is_not_said(database):
    found, said, _ = database
    assert found._tried(_failing(2, _lost(), [])) == "done" and said == []


def test_a_server_that_stays_away_is_given_up(database):
    found, said, time = database
    with pytest.raises(KernelError, match="not available again within 120 s") as caught:
        found._tried(_failing(10_000, _lost(), []))
    assert 120.0 <= time[0] - 100.0 < 120.0 + postgres.LONGEST_WAIT
    assert SECRET not in str(caught.value) and "--resume" in caught.value.hint


@pytest.mark.parametrize("state", ["23505", "42P01", "28P01"])
def test_what_does_not_pass_is_not_tried_again(database, state):
    given = []
    with pytest.raises(KernelError, match="the store cannot be used") as caught:
        database[0]._tried(_failing(1, _lost(state), given))
    assert given == [False] and SECRET not in str(caught.value)


def test_a_server_that_is_not_there_is_refused_at_once():
    with pytest.raises(KernelError, match="the store cannot be used: .*refused") as caught:
        Store(NOWHERE)
    assert caught.value.where == "postgresql://user@127.0.0.1:1/db"
    assert "PGPASSWORD" in caught.value.hint and "secret" not in str(caught.value)


@pytest.mark.parametrize("table", META.sorted_tables, ids=lambda table: table.name)
def test_tables_are_made_by_either_database(table):
    for dialect in (postgresql.dialect(), sqlite.dialect()):
        assert f"CREATE TABLE {table.name} " in str(CreateTable(table).compile(dialect=dialect))


def _python(program, *words):
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


FILE = """
import sys
from search.store.store import Store
store = Store(sys.argv[1])
store.secret()
print(*[m for m in sys.modules if "psycopg" in m or "postgres" in m])
"""


def test_a_store_in_a_file_needs_nothing_of_postgresql(tmp_path):
    done = _python(hiding("psycopg") + FILE, str(tmp_path / "store.db"))
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_a_lacking_driver_is_named_with_what_to_install():
    done = _python(
        hiding("psycopg")
        + f"""
from search.evolve import main
raise SystemExit(main(["--list-runs", "--store={NOWHERE}"]))
"""
    )
    assert done.returncode == 2
    assert "needs the Python package `psycopg`" in done.stderr
    assert "pip install 'psycopg[binary]'" in done.stderr and "secret" not in done.stderr
