"""A store on a PostgreSQL server: shared, locked, tried again, and moved to a file and back."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sql

from ir.errors import KernelError
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation, Failure
from search.core.settings import Settings
from search.core.stored import StoredEvent, StoredExchange
from search.core.stored_job import StoredRound
from search.store import copying, leases, postgres
from search.store.copying import copy_store
from search.store.jobs import StoredJobs
from search.store.schema import CLAIMS, EVALUATIONS, EVENTS, LEASES, META
from search.store.store import Store
from testing.postgres.server import PASSWORD, QUOTED, running

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8}, ({"M": 1},), seed=3)
ROOT = Candidate("spec", "root", "chip", "tongue", origin=Origin("first"))
CHILD = Candidate(
    "spec", "child", "chip", "tongue", "source", Origin("mutate", (ROOT.key,), "+ \0 tile")
)
GOOD = Evaluation(1 / 3, "simulated", "simulator", figures={"cycles": 0.1}, seconds={"time": 2.0})
BAD = Failure("check", "wrong", "off by one")


@pytest.fixture(scope="module")
def server():
    with running("fsync=off") as found:
        yield found


@pytest.fixture
def url(server):
    return server.database()


@pytest.fixture
def store(url):
    with closing(Store(url)) as found:
        yield found


def _filled(store):
    """The name of a run in a store that has something of everything."""
    run = store.start(SETTINGS, {"context": "abc"})
    store.asked(run, 0, [ROOT], 0.5)
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    store.log(run, StoredEvent("told", ROOT.key, 1.5, "a \0 word"))
    store.asked(run, 1, [CHILD], 2.0)
    store.evaluated(run, CHILD.key, "abc", BAD, 3.0)
    store.exchanged(run, StoredExchange("d", 0, "{}", "reply", 0.1))
    store.exchanged(run, StoredExchange("d", 1, "{}", "reply", 0.1))
    store.log(run, StoredEvent("stopped", "", 4.0, "enough"))
    return run


def test_a_run_comes_back_as_from_a_file(store, tmp_path):
    with closing(Store(str(tmp_path / "store.db"))) as file:
        for each in (file, store):
            assert _filled(each) == "softmax-chip-1"
        assert store.load("softmax-chip-1") == file.load("softmax-chip-1")
        assert store.exchanges("softmax-chip-1") == file.exchanges("softmax-chip-1")
    assert store.cached(ROOT.key, "abc") == GOOD
    assert store.secret() == store.secret()
    assert store.start(SETTINGS, {}) == "softmax-chip-2"


def test_tables_are_those_that_the_models_say(store):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store.transaction() as connection:
        assert compare_metadata(MigrationContext.configure(connection), META) == []


def test_an_older_store_is_brought_up_to_date(url):
    from alembic import command

    from search.store.migrations.upgrade import config

    with closing(Store(url)) as store, store.transaction() as connection:
        META.drop_all(connection)
        connection.execute(sql.text("DROP TABLE alembic_version"))
        command.upgrade(config(connection), "0002")
    with closing(Store(url)) as store:
        assert store.load(_filled(store)).settings == SETTINGS
        store.learned("name", "text")
        assert store.lessons() == {"name": "text"}


def test_many_may_make_a_store_and_start_runs_at_once(url):
    names: list[str] = []

    def start():
        with closing(Store(url)) as store:
            names.append(store.start(SETTINGS, {"secret": store.secret()}))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(names) == [f"softmax-chip-{n}" for n in range(1, 9)]
    with closing(Store(url)) as store:
        assert len({store.load(name).environment["secret"] for name in names}) == 1


HOLD = """
import sys
from search.core.settings import Settings
from search.store.store import Store
store = Store(sys.argv[1])
print(store.start(Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8}), {}), flush=True)
print(*store.leases.claim([("abc", "key")]), flush=True)
sys.stdin.read()
"""


def _holding(url):
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def test_a_run_is_one_process_s_until_that_is_killed(store, url):
    with _holding(url) as other:
        run = other.stdout.readline().strip()
        assert "key" in other.stdout.readline()
        with pytest.raises(KernelError, match=f"process {other.pid} on .* works on run `{run}`"):
            store.resume(run)
        with pytest.raises(KernelError, match="is not this process's any more"):
            store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
        assert store.load(run).outcomes == {}, "to look at it is allowed"
        other.kill()
        other.wait()
        while True:  # until the server has noticed
            try:
                assert store.resume(run).settings.kernel == "softmax"
                break
            except KernelError:
                time.sleep(0.01)
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)


def test_a_run_that_stopped_may_be_resumed_by_another(store, url):
    run = _filled(store)
    with closing(Store(url)) as other:
        other.resume(run)
        with pytest.raises(KernelError, match="works on run"):
            store.resume(run)
        other.log(run, StoredEvent("stopped", "", 5.0, ""))
        store.resume(run)


def test_work_is_one_holder_s_until_its_outcome_is_stored(store, url):
    run = store.start(SETTINGS, {})
    work = [("abc", ROOT.key), ("abc", CHILD.key)]
    with closing(Store(url)) as other:
        assert store.leases.claim(work[:1]) == {work[0]}
        assert other.leases.claim(work) == {work[1]}
        assert other.leases.claim(work) == frozenset() == store.leases.free(work)
        store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
        assert other.leases.free(work) == {work[0]} and other.cached(ROOT.key, "abc") == GOOD
        other.leases.release(work)
        assert store.leases.claim(work) == set(work)
        store.leases.release(work)
        assert other.leases.claim(work) == set(work)
    assert store.leases.claim(work) == set(work), "who closes gives all back"


def test_work_of_a_process_that_was_killed_is_free_in_time(store, url, monkeypatch):
    with _holding(url) as other:
        other.stdout.readline()
        other.stdout.readline()
        other.kill()
    assert store.leases.claim([("abc", "key")]) == frozenset()
    past = LEASES.update().values(until=0.0)
    with store.transaction() as connection:
        connection.execute(past)
    assert store.leases.claim([("abc", "key")]) == frozenset(), "the server has just started"
    monkeypatch.setattr(leases, "_IS_FREE", LEASES.c.until < leases._NOW)
    assert store.leases.claim([("abc", "key")]) == {("abc", "key")}


def test_a_lease_is_kept_while_its_holder_works(store, monkeypatch):
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.01)
    store.leases.claim([("abc", "key")])
    with store.transaction() as connection:
        first = connection.scalar(sql.select(LEASES.c.until))
    while True:
        with store.transaction() as connection:
            if connection.scalar(sql.select(LEASES.c.until)) > first:
                return


def _counted(store):
    with store.transaction() as connection:
        found = connection.execute(sql.select(EVALUATIONS.c.run, EVALUATIONS.c.key)).all()
        told = connection.scalars(
            sql.select(EVENTS.c.key).where(EVENTS.c.kind == "evaluated")
        ).all()
    return Counter(tuple(row) for row in found), Counter(told)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT, signal.SIGINT])
def test_what_is_written_while_the_server_ends_is_there_once(server, store, number):
    run = store.start(SETTINGS, {})
    ended = threading.Event()

    def end():
        for _ in range(3):
            server.stop(number)
            server.start()
        ended.set()

    ending = threading.Thread(target=end)
    ending.start()
    count = 0
    while not ended.is_set():
        asked = replace(ROOT, schedule=f"{count}")
        store.asked(run, count, [asked], 0.0)
        store.evaluated(run, asked.key, "abc", GOOD, float(count))
        count += 1
    ending.join()
    rows, told = _counted(store)
    assert len(rows) == len(told) == count
    assert set(rows.values()) == set(told.values()) == {1}
    assert len(store.load(run).generations) == count
    with closing(Store(_of(server, store))) as other:
        with pytest.raises(KernelError, match="works on run"):
            other.resume(run)


def _of(server, store):
    return f"postgresql://speciate:{QUOTED}@127.0.0.1:{server.port}/{store.url.rpartition('/')[2]}"


class _LostAnswer(Exception):
    """Made by the test below: the server commits, and its answer does not come."""


@pytest.mark.parametrize(
    "what", ["start", "asked", "evaluated", "log", "stopped", "exchanged", "secret"]
)
def test_a_write_whose_answer_is_lost_is_written_once(store, what):
    run = store.start(SETTINGS, {})
    store.asked(run, 0, [ROOT], 0.0)
    event = StoredEvent("stopped" if what == "stopped" else "told", ROOT.key, 1.0, "")
    write = {
        "start": lambda: store.start(SETTINGS, {}),
        "asked": lambda: store.asked(run, 1, [CHILD], 0.0),
        "evaluated": lambda: store.evaluated(run, ROOT.key, "abc", GOOD, 1.0),
        "log": lambda: store.log(run, event),
        "stopped": lambda: store.log(run, event),
        "exchanged": lambda: store.exchanged(run, StoredExchange("d", 0, "{}", "", 0.1)),
        "secret": store.secret,
    }[what]
    lost = []

    def lose(connection):
        if not lost:
            lost.append(connection.connection.dbapi_connection)
            lost[0].commit()
            lost[0].close()

    sql.event.listen(store.database.engine, "commit", lose)
    write()
    sql.event.remove(store.database.engine, "commit", lose)
    assert lost
    with store.transaction() as connection:
        count = {
            t.name: connection.scalar(sql.select(sql.func.count()).select_from(t))
            for t in META.sorted_tables
        }
    same = {
        "runs": 1,
        "nodes": 1,
        "edges": 0,
        "evaluations": 0,
        "events": 2,
        "exchanges": 0,
        "claims": 1,
    }
    more = {
        "start": {"runs": 2, "events": 3, "claims": 2},
        "asked": {"nodes": 2, "edges": 1, "events": 3},
        "evaluated": {"evaluations": 1, "events": 3},
        "log": {"events": 3},
        "stopped": {"events": 3, "claims": 0},
        "exchanged": {"exchanges": 1},
        "secret": {"secret": 1},
    }[what]
    names = ("secret", "leases", "lessons", "jobs", "job_claims", "rounds", "artefacts")
    empty = dict.fromkeys(names, 0)
    expected = {**empty, **same, **more}
    assert count == expected


def test_a_server_that_does_not_come_back_ends_the_run_with_an_error(server, store, monkeypatch):
    run = store.start(SETTINGS, {})
    said = []
    store.database._say = said.append
    monkeypatch.setattr(postgres, "TRY_SECONDS", 3.0)
    server.stop()
    try:
        with pytest.raises(KernelError, match="not available again within 3 s") as caught:
            store.log(run, StoredEvent("told", "", 1.0, ""))
    finally:
        server.start()
    assert "--resume" in caught.value.hint and said == [
        "the store's server is lost; trying again for 3 s"
    ]
    store.log(run, StoredEvent("told", "", 1.0, ""))
    assert [e.kind for e in store.load(run).events] == ["started", "told"]


def test_a_connection_that_only_this_side_lost_is_ended_at_the_server(store):
    run = store.start(SETTINGS, {})
    pid = store.database._backend[0]
    left = store.database._writer  # the server keeps it, as with a network that is cut
    store.database._writer = None
    store.log(run, StoredEvent("told", "", 1.0, ""))
    assert store.database._backend[0] != pid
    left.invalidate()
    assert [e.kind for e in store.load(run).events] == ["started", "told"]


def test_no_message_has_the_password(server, url, tmp_path):
    wrong = url.replace(QUOTED, "wrong%2Fword")
    none = url.replace("/store", "/none")
    far = url.replace(f":{server.port}", ":1")
    with closing(Store(url)) as store:
        run = store.start(SETTINGS, {})
        texts = [store.url]
        with closing(Store(url)) as other:
            for call in (lambda: other.resume(run), lambda: other.load("nothing")):
                with pytest.raises(KernelError) as caught:
                    call()
                texts.append(str(caught.value))
    for bad in (wrong, none, far, url + "?nothing=1"):
        with pytest.raises(KernelError, match="the store cannot be used") as caught:
            Store(bad)
        texts.append(str(caught.value))
    for secret in (PASSWORD, QUOTED, "wrong/word", "wrong%2Fword"):
        assert not [text for text in texts if secret in text]


def _copy(source, to, lessons=None, kept=None):
    return copy_store(
        str(source),
        str(to),
        lessons=lessons or {},
        refuse=lambda texts: None,
        keep=(kept if kept is not None else {}).update,
        say=lambda line: None,
    )


def _rows(url):
    with closing(Store(str(url))) as store, store.transaction() as connection:
        return {
            t.name: sorted(tuple(r) for r in connection.execute(sql.select(t)))
            for t in copying.TABLES
        }


def test_a_store_that_is_moved_there_and_back_is_equal(server, tmp_path):
    with closing(Store(str(tmp_path / "a.db"))) as store:
        for _ in range(3):
            _filled(store)
        store.secret()
        jobs = StoredJobs(store)
        jobs.begin(jobs.add("night", '{"searches": []}'), StoredRound(0, 0, 8))
        jobs.let_go("night-1")
    there, lessons, kept = server.database(), {"one": "first", "two": "second"}, {}
    said = _copy(tmp_path / "a.db", there, lessons)
    _copy(there, tmp_path / "b.db", kept=kept)
    assert _rows(tmp_path / "a.db") == _rows(there) == _rows(tmp_path / "b.db")
    assert kept == lessons and said["lessons"] == 2 and said["evaluations"] == 6
    with closing(Store(there)) as store:  # and goes on there
        run = _filled(store)
        assert run == "softmax-chip-4" and len(store.load(run).events) == 7
        store.resume("softmax-chip-1")
        with closing(Store(there)) as other:  # a job is of one process at a time
            assert StoredJobs(store).resume("night-1").rounds == (StoredRound(0, 0, 8),)
            with pytest.raises(KernelError, match="works on job `night-1`"):
                StoredJobs(other).resume("night-1")
            StoredJobs(store).let_go("night-1")
            assert StoredJobs(other).resume("night-1").job == "night-1"


def test_a_place_that_is_taken_is_refused_and_stays(server, url, tmp_path):
    with closing(Store(str(tmp_path / "a.db"))) as store:
        _filled(store)
    _copy(tmp_path / "a.db", url)
    before = _rows(url)
    for source, to in ((tmp_path / "a.db", url), (url, tmp_path / "a.db"), (url, url)):
        with pytest.raises(KernelError, match="already exists|holds a store already"):
            _copy(source, to)
    assert _rows(url) == before


def test_a_store_at_work_is_not_moved(server, url, tmp_path):
    with _holding(url) as other:
        run = other.stdout.readline().strip()
        with pytest.raises(KernelError, match=f"process {other.pid} on .* works on run `{run}`"):
            _copy(url, tmp_path / "a.db")
        assert not list(tmp_path.iterdir())
        other.stdin.close()
    assert _copy(url, tmp_path / "a.db")["runs"] == 1


def test_a_copy_that_fails_leaves_nothing(server, url, tmp_path, monkeypatch):
    with closing(Store(str(tmp_path / "a.db"))) as store:
        _filled(store)

    def fail(*given):
        raise KernelError("enough")

    for source, to in ((tmp_path / "a.db", url), (server.database(), tmp_path / "b.db")):
        with monkeypatch.context() as changed, pytest.raises(KernelError, match="enough"):
            changed.setattr(copying, "_number_on", fail)
            changed.setattr(copying, "require_idle", fail if to != url else copying.require_idle)
            _copy(source, to)
    assert not any(_rows(url).values()) and [f.name for f in tmp_path.iterdir()] == ["a.db"]
    _copy(tmp_path / "a.db", url)
    with closing(Store(url)) as store, store.transaction() as connection:
        assert connection.scalar(sql.select(sql.func.count()).select_from(CLAIMS)) == 0
