"""How long a stored evaluation takes, in a file and on a server: `bazel test --config=benchmark //search/store/...`."""

from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest

from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.core.stored import StoredEvent
from search.store.store import Store
from testing.postgres.server import running

SETTINGS = Settings("softmax", "def softmax", "chip", ("tongue",), {"M": 8})
ROOT = Candidate("spec" * 200, "schedule" * 50, "chip", "tongue", origin=Origin("first"))
GOOD = Evaluation(1.5, "simulated", "simulator", figures={f"figure {n}": n / 3 for n in range(40)})
BATCH = 8


@pytest.fixture(scope="module")
def server():
    with running() as found:  # waits until each transaction is on disk
        yield found


@pytest.fixture(params=["file", "server"])
def store(request, tmp_path):
    place = str(tmp_path / "a.db")
    if request.param == "server":
        place = request.getfixturevalue("server").database()
    with closing(Store(place)) as found:
        yield found


def test_a_generation_is_stored(benchmark, store):
    """Eight candidates are asked, evaluated and reported; in a shared store they are also
    leased."""
    run, numbers = store.start(SETTINGS, {}), count()

    def generation():
        number = next(numbers)
        asked = [replace(ROOT, source=f"{number} {rank}") for rank in range(BATCH)]
        store.asked(run, number, asked, 0.0)
        if store.leases is not None:
            store.leases.claim([("abc", c.key) for c in asked])
        for each in asked:
            store.cached(each.key, "abc")
        for each in asked:
            store.evaluated(run, each.key, "abc", GOOD, 1.0)
            store.log(run, StoredEvent("told", each.key, 1.0, ""))

    benchmark(generation)
    assert len(store.load(run).outcomes) == BATCH * next(numbers)


def test_an_outcome_is_looked_up(benchmark, store):
    run = store.start(SETTINGS, {})
    store.evaluated(run, ROOT.key, "abc", GOOD, 1.0)
    assert benchmark(store.cached, ROOT.key, "abc") == GOOD
