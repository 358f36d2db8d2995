"""Eight concurrent searches on one PostgreSQL store, while the server and a search are killed."""

import json
import signal
import sqlite3
import time
from collections import Counter
from contextlib import ExitStack, closing

import pytest
import sqlalchemy as sql

from search.store.copying import TABLES
from search.store.schema import EDGES, EVALUATIONS, EVENTS, LEASES, NODES, RUNS
from search.store.store import Store
from testing.cli.place import GUARD, Place
from testing.postgres.server import OWNER, PASSWORD, QUOTED, running

SEEDS, COPIES, EVALUATIONS_EACH = (1, 2), 4, 250
WORDS = (
    "--target=null",
    "--kernel=rows.kir",
    f"--evaluations={EVALUATIONS_EACH}",
    "--secret=known",
    "--workers=1",
    "--json",
)
ALL = len(SEEDS) * COPIES * EVALUATIONS_EACH
SAME = ("run", "seconds", "models")  # differences between two equal searches


@pytest.fixture(scope="module")
def server():
    with running() as found:
        yield found


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


def _found(out):
    (run,) = json.loads(out)["runs"]
    return {name: value for name, value in run.items() if name not in SAME}


def _wait_for(server, store, count):
    """Waits until a number of evaluations is stored."""
    end = time.monotonic() + GUARD
    stored = sql.select(sql.func.count()).select_from(EVALUATIONS)
    while store.database.read(lambda connection: connection.scalar(stored)) < count:
        assert time.monotonic() < end, server.log
        time.sleep(0.2)


def _rows(url, tables=TABLES):
    with closing(Store(str(url))) as store, store.transaction() as connection:
        return {t.name: sorted(tuple(r) for r in connection.execute(sql.select(t))) for t in tables}


def test_searches_share_a_store_whose_server_is_killed(server, place, tmp_path):
    alone = {}
    for seed in SEEDS:
        code, out, err = place.run(*WORDS, f"--seed={seed}", "--store=alone.db")
        assert code == 0, err
        alone[seed] = _found(out)
    url = server.database()
    words = (*WORDS, f"--store={url.replace(':' + QUOTED, '')}")
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store(url)))
        started = []
        for seed in [seed for seed in SEEDS for _ in range(COPIES)]:
            search = place.start(*words, f"--seed={seed}", PGPASSWORD=PASSWORD)
            stack.callback(search.kill)
            started.append((seed, search))
        _wait_for(server, store, ALL // 4)
        server.kill()
        server.start()
        _wait_for(server, store, ALL // 2)
        server.stop(signal.SIGQUIT)
        server.start()
        _wait_for(server, store, 5 * ALL // 8)
        of_killed, killed = started.pop()
        killed.kill()
        killed.communicate()
        for seed, process in started:
            out, err = process.communicate(timeout=GUARD)
            assert process.returncode == 0, err
            assert PASSWORD not in err + out and QUOTED not in err + out
            assert _found(out) == alone[seed]
        (left,) = [run for run in store.runs() if store.load(run).events[-1].kind != "stopped"]
    words = (f"--resume={left}", "--target=null", "--workers=1", "--json", words[-1])
    code, out, err = place.run(*words, PGPASSWORD=PASSWORD)
    assert code == 0, err
    assert _found(out) == alone[of_killed]
    _check(url)
    _check_copies(place, server, url)


def _check(url):
    """Nothing is lost or duplicated, and equal candidates were evaluated once."""
    rows = _rows(url, (RUNS, NODES, EDGES, EVALUATIONS, EVENTS, LEASES))
    assert len(rows["runs"]) == len(SEEDS) * COPIES and len(rows["evaluations"]) == ALL
    told = Counter((run, key) for _, run, kind, key, *_ in rows["events"] if kind == "told")
    assert len(told) == ALL and set(told.values()) == {1}
    assert set(told) == {(run, key) for run, key, *_ in rows["evaluations"]}
    assert {(run, key) for run, key, *_ in rows["nodes"]} >= set(told)
    outcomes = {}
    for _, key, context, outcome, _ in rows["evaluations"]:
        if not context.endswith("/same"):
            outcomes.setdefault((key, context), set()).add(outcome)  # the duration varies
    twice = {work: found for work, found in outcomes.items() if len(found) > 1}
    assert not twice
    assert rows["leases"] == []


def _check_copies(place, server, url):
    """The store is copied to a file, to another database, and to a file again."""
    other = server.database()
    for source, to in ((url, "b.db"), ("b.db", other), (other, "c.db")):
        code, out, err = place.run(f"--store={source}", f"--copy-store={to}")
        assert code == 0, err
        assert PASSWORD not in err + out and QUOTED not in err + out
        assert f"evaluations: {ALL} of {ALL} rows" in err
    expected = _rows(url)
    for copy in (place.work / "b.db", other, place.work / "c.db"):
        assert _rows(copy) == expected
    with sqlite3.connect(place.work / "c.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_nothing_that_is_written_has_the_password(server, place):
    url = server.database()
    code, out, err = place.run(
        *WORDS[:2],
        "--evaluations=3",
        "--workers=1",
        f"--store={url}",
        "--out=results",
        "--report=report.html",
        "--lessons",
    )
    assert code == 0, err
    code, again, more = place.run(f"--store={url}", "--list-runs")
    assert code == 0 and "rows-null-1" in again, more
    code, shown, more = place.run(f"--store={url}", "--show=rows-null-1", "--json")
    assert code == 0, more
    code, _, refused = place.run(f"--stor={url}")
    assert code == 2
    texts = [out, err, again, shown, refused]
    texts += [f.read_text() for f in place.work.rglob("*") if f.is_file()]
    assert any(f"--store=postgresql://{OWNER}@" in text for text in texts), "the command is told"
    texts += map(repr, _rows(url).values())
    for secret in (PASSWORD, QUOTED):
        assert not [text for text in texts if secret in text]
    with closing(Store(url)) as store:
        assert list(store.lessons())
