"""The command on a test cluster that loses slots: it stops, and it can be resumed."""

import json

import pytest

from search.evaluator import slots
from search.evaluator.testing.fake_cluster import FakeCluster, ThreadSlot, engage, node
from search.store.store import Store
from testing.cli.place import Place

SEARCH = ("--target=null", "--kernel=rows.kir", "--evaluations=12", "--seed=5", "--secret=same")
EVER = 10**6  # candidates


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "null")


@pytest.fixture
def losing(monkeypatch):
    """`losing(healthy, dies)`: from now on there is a cluster whose first slots lose nothing for so
    many candidates in all, and whose slots lose so many each afterwards."""
    monkeypatch.setattr(slots, "LONGEST_WAIT", 0.0)
    monkeypatch.setattr(slots, "LOSSES", 3)

    def use(healthy, dies):
        left = [healthy]

        class Losing(ThreadSlot):
            def evaluate(self, asked, texts):
                self.dies = 0 if left[0] else dies
                left[0] = max(0, left[0] - 1)
                return super().evaluate(asked, texts)

        cluster = FakeCluster(node("n0"), making=lambda resources, without: Losing("n0"))
        engage(monkeypatch, cluster)

    return use


def test_losses_without_end_stop_a_search_which_then_goes_on_to_the_same_result(place, losing):
    code, expected, err = place.run_here(*SEARCH, "--store=one.db", "--json")
    assert code == 0, err
    losing(7, EVER)
    code, out, err = place.run_here(*SEARCH, "--store=two.db", "--cluster=lab:6379", "--json")
    assert (code, out) == (2, "")
    assert "was lost 3 times" in err and "--resume=rows-null-1 goes on" in err
    store = Store(str(place.work / "two.db"))
    assert len(store.load("rows-null-1").outcomes) == 7
    store.close()
    losing(EVER, 0)
    words = ("--resume=rows-null-1", "--store=two.db", "--cluster=lab:6379", "--json")
    code, out, err = place.run_here(*words)
    assert code == 0, err
    assert json.loads(out) == json.loads(expected)
