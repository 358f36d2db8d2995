"""The command on a real Ray cluster of four nodes on this machine: as locally, whatever is lost.

PYTHONPATH=$(python3 bazel/make_cluster_site.py requirements_cluster.lock) python3 -m pytest -m ray search
"""

import itertools
import json
import os
import sys
import threading
from collections import Counter

import pytest

from search.core.candidate import candidate
from search.evaluator.testing.ray_nodes import RayNodes
from search.store.store import Store
from testing.cli.place import Place

pytestmark = pytest.mark.ray

SEARCH = (
    "--kernel=rmsnorm_matmul",
    "--evaluations=48",
    "--seed=3",
    "--secret=same",
    "--no-promote",
)
SMALL = ("--shape=M=128,K=128,N=128",)
LONG = ("--shape=M=512,K=512,N=256", "--evaluations=160")
EVERY = 20.0  # seconds between kills
KILLS = 10
EACH = 4  # candidates that are handed out before a node with one is killed


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The results of a local search."""
    return searched(Place(tmp_path_factory.mktemp("local"), "npu"))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "npu")


def searched(place, *words, run=Place.run_here, size=SMALL):
    """The results of a search. run: how it is run, in this process or in a new one."""
    code, out, err = run(place, "--target=npu", *SEARCH, *size, "--store=s.db", "--json", *words)
    assert code == 0, err
    (found,) = json.loads(out)["runs"]
    return found


def stored(place):
    """The run in a place's store."""
    store = Store(str(place.work / "s.db"))
    try:
        return store.load(store.runs()[-1])
    finally:
        store.close()


def handed_out(monkeypatch, then=lambda slot: None):
    """How often each candidate is handed to a slot, by key. then: called with the slot."""
    from search.evaluator.ray_cluster import _RaySlot

    times = Counter()

    def evaluate(self, asked, texts, evaluate=_RaySlot.evaluate):
        answer = evaluate(self, asked, texts)
        times[candidate(json.loads(asked)["table"]).key] += 1
        then(self)
        return answer

    monkeypatch.setattr(_RaySlot, "evaluate", evaluate)
    return times


def test_four_nodes_find_what_one_machine_finds(place, expected, monkeypatch):
    times = handed_out(monkeypatch)
    with RayNodes(4) as nodes:
        found = searched(place, f"--cluster={nodes.address}")
        run = stored(place)
    assert found == expected
    assert set(times.values()) == {1} and times.keys() == run.outcomes.keys()
    assert not run.keys("lost")


def test_so_they_do_while_nodes_are_killed_and_only_what_was_lost_is_repeated(
    place, expected, monkeypatch
):
    from search.evaluator.ray_cluster import _RaySlot

    places, victims, count = {}, {}, Counter()

    def opened(self, benches, open=_RaySlot.open):
        future = open(self, benches)

        def note(done):
            if not done.exception():
                places[id(self)] = done.result().host

        future.add_done_callback(note)
        return future

    def then(slot):
        count["handed"] += 1
        where = places[id(slot)].split()[-1]
        if count["handed"] >= EACH and len(victims) < KILLS and where not in victims:
            count["handed"] = 0
            victims[where] = nodes.replace(where)

    monkeypatch.setattr(_RaySlot, "open", opened)
    times = handed_out(monkeypatch, then)
    with RayNodes(4) as nodes:
        found = searched(place, f"--cluster={nodes.address}")
        for victim in victims.values():
            victim.result()
        run = stored(place)
    assert len(victims) == KILLS
    assert found == expected
    lost = Counter(event.key for event in run.events if event.kind == "lost")
    assert lost, "a node is killed while it has a candidate"
    assert times == Counter(run.outcomes.keys()) + lost


class Killer(threading.Thread):
    """Kills nodes in turn, each some seconds after the last one was replaced, while a search
    runs."""

    def __init__(self, nodes):
        super().__init__(daemon=True)
        self.nodes, self.killed = nodes, []
        self.searching, self.over = threading.Event(), threading.Event()

    def run(self):
        while len(self.killed) < KILLS and not self.over.wait(EVERY):
            if self.searching.is_set():
                where = self.nodes.alive()[0]
                self.nodes.replace(where).result()
                self.killed.append(where)


def test_so_they_do_while_a_node_is_killed_every_20_s(tmp_path_factory, monkeypatch, capsys):
    times = handed_out(monkeypatch)
    with RayNodes(4) as nodes:
        killer = Killer(nodes)
        killer.start()
        try:
            for seed in itertools.count(3):  # until there were enough kills
                words = (f"--seed={seed}",)
                here, there = (Place(tmp_path_factory.mktemp(n), "npu") for n in ("here", "there"))
                expected = searched(here, *words, size=LONG)
                times.clear()
                killer.searching.set()
                found = searched(there, *words, f"--cluster={nodes.address}", size=LONG)
                killer.searching.clear()
                run = stored(there)
                lost = Counter(event.key for event in run.events if event.kind == "lost")
                with capsys.disabled():
                    print(f"\nseed {seed}: {len(killer.killed)} kills so far, {lost.total()} lost")
                assert found == expected
                assert times == Counter(run.outcomes.keys()) + lost
                if len(killer.killed) == KILLS:
                    break
        finally:
            killer.over.set()
            killer.join()


def test_a_target_that_a_node_declares_is_evaluated_there_alone(place, expected):
    with RayNodes(1) as nodes:
        where = nodes.add(resources={"npu": 1})
        found = searched(place, f"--cluster={nodes.address}")
        used = stored(place).environment["cluster"]["nodes"]
        code, _, err = place.run_here(
            "--target=h200", "--kernel=softmax", "--no-store", f"--cluster={nodes.address}"
        )
    assert found == expected
    assert [node["host"].split()[-1] for node in used.values()] == [where]
    assert code == 2 and "no node of the cluster declares `h200`" in err and "`npu`" in err


def test_a_node_with_other_versions_is_left_out(place, expected, tmp_path):
    folder = tmp_path / "other" / "pybind11-0.0.1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pybind11\nVersion: 0.0.1\n")
    with RayNodes(1) as nodes:
        own = searched(place, f"--cluster={nodes.address}", "--workers=1")
        nodes.add(env_vars={"PYTHONPATH": f"{folder.parent}:{os.environ['PYTHONPATH']}"})
        code, _, err = place.run_here(
            "--target=npu", *SEARCH, *SMALL, "--no-store", f"--cluster={nodes.address}"
        )
    assert own == expected and code == 0
    assert err.count("is left out") == 1 and "its packages" in err


def outside(place, *words):
    """In a new process, because one that was in a cluster cannot be a client of another."""
    return place.run(*words, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))


def test_a_machine_outside_the_cluster_reaches_it_as_a_client(place, expected):
    with RayNodes(2, ray_client_server_port=23456):
        assert searched(place, "--cluster=ray://127.0.0.1:23456", run=outside) == expected
