"""The requests to Ray, with a fake module in its place."""

import os
import sys
from concurrent.futures import Future
from contextlib import closing
from socket import create_server
from types import ModuleType, SimpleNamespace

import pytest

from ir.errors import KernelError
from search.evaluator.cluster import Node


class RayActorError(Exception):
    pass


class ActorUnavailableError(RayActorError):
    pass


class NodeDiedError(Exception):
    pass


class ObjectLostError(Exception):
    pass


class RayError(Exception):
    pass


class Method:
    """A method of an actor; records its calls."""

    def __init__(self, name, calls):
        self.name, self.calls = name, calls

    def remote(self, *given):
        self.calls.append((self.name, given))
        return SimpleNamespace(future=Future)


class Actor:
    """Has any method."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return Method(name, self.calls)


class Ray(ModuleType):
    """The part of Ray that is used; `made` has the classes of actors with their options."""

    def __init__(self):
        super().__init__("ray")
        self.made, self.killed, self.inits, self.fault = [], [], [], None
        self.is_initialized = lambda: False

    def init(self, **options):
        self.inits.append(options)
        if self.fault:
            raise self.fault

    def remote(self, kind):
        def options(**given):
            actor = Actor()
            self.made.append((kind, given, actor))
            return SimpleNamespace(remote=lambda: actor)

        return SimpleNamespace(options=options)

    def kill(self, actor):
        self.killed.append(actor)

    def nodes(self):
        alive = {"NodeID": "1f", "NodeManagerHostname": "lab", "Resources": {"CPU": 8.0}}
        return [alive | {"Alive": True}, alive | {"Alive": False, "NodeID": "2f"}]


@pytest.fixture
def ray(monkeypatch):
    """Replaces Ray during a test."""
    fake = Ray()
    exceptions, actor = ModuleType("ray.exceptions"), ModuleType("ray.actor")
    private, worker = ModuleType("ray._private"), ModuleType("ray._private.worker")
    worker.print_to_stdstream, private.worker = print, worker
    kinds = (RayActorError, ActorUnavailableError, NodeDiedError, ObjectLostError, RayError)
    vars(exceptions).update({kind.__name__: kind for kind in kinds})
    actor.ActorHandle = Actor
    fake.exceptions, fake.actor = exceptions, actor
    for module in (fake, exceptions, actor, private, worker):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    yield fake
    sys.modules.pop("search.evaluator.ray_cluster", None)


@pytest.fixture
def cluster(ray):
    from search.evaluator.ray_cluster import connected

    return connected("local", 3)


def test_a_local_cluster_has_as_many_cores_as_workers_and_little_memory(ray, cluster):
    (options,) = ray.inits
    assert options["num_cpus"] == 3 and options["object_store_memory"] <= 200 << 20
    assert options["include_dashboard"] is False and options["address"] == "local"


def test_ray_prints_nothing_where_results_go(ray, cluster, capsys):
    from ray._private import worker

    worker.print_to_stdstream({"lines": ["Raylet is terminated"]}, ignore_prefix=False)
    assert capsys.readouterr().out == ""
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_nodes_are_those_that_are_alive(cluster):
    assert cluster.nodes() == [Node("1f", "lab", {"CPU": 8.0})]


def test_all_searches_know_one_keeper_of_shares(ray, cluster):
    ((kind, options, actor),) = ray.made
    assert kind.__name__ == "Shares"
    assert options["get_if_exists"] and options["lifetime"] == "detached"
    assert options["num_cpus"] == 0 and options["max_restarts"] == -1
    cluster.share("gpu", "me", 3, 8)
    cluster.leave("gpu", "me")
    assert actor.calls == [("share", ("gpu", "me", 3, 8)), ("leave", ("gpu", "me"))]


def test_a_slot_takes_resources_and_avoids_nodes(ray, cluster):
    slot = cluster.slot({"CPU": 1.0, "GPU": 0.25, "chip": 0.25}, ("1f", "2f"))
    _, options, actor = ray.made[-1]
    assert (options["num_cpus"], options["num_gpus"]) == (1.0, 0.25)
    assert options["resources"] == {"chip": 0.25}
    assert options["scheduling_strategy"] == "SPREAD" and options["max_restarts"] == 0
    assert options["label_selector"] == {"ray.io/node-id": "!in(1f,2f)"}
    slot.open("benches")
    slot.evaluate("table", ["text", "other"])
    assert actor.calls == [
        ("open_here", ("benches",)),
        ("evaluate", ("table", "text", "other")),
    ]
    slot.end()
    assert ray.killed == [actor]
    cluster.slot({"CPU": 1.0}, ())
    assert "label_selector" not in ray.made[-1][1]


@pytest.mark.parametrize(
    "error, how",
    [
        (
            RayActorError("The actor died.\n\n  It was killed by a signal.\n"),
            "It was killed by a signal.",
        ),
        (ActorUnavailableError("The actor 12ab is unavailable: RpcError"), "its connection broke"),
        (NodeDiedError(""), "NodeDiedError"),
        (TypeError("a fault of ours"), ""),
    ],
)
def test_losses_are_told_from_other_errors(cluster, error, how):
    assert cluster.loss(error) == how


def test_an_address_at_which_nobody_answers_is_an_error_at_once(ray):
    from search.evaluator.ray_cluster import connected

    with closing(create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    with pytest.raises(KernelError, match=f"no cluster answers at `ray://127.0.0.1:{port}`"):
        connected(f"ray://127.0.0.1:{port}", None)
    assert not ray.inits


def test_a_cluster_that_cannot_be_used_is_an_error_with_ray_s_reason(ray):
    from search.evaluator.ray_cluster import connected

    with closing(create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert connected(address, None).address == address
        assert ray.inits[-1]["address"] == address
        ray.fault = RuntimeError("Version mismatch: The cluster was started with 2.1\nmore")
        with pytest.raises(
            KernelError, match="cannot be used: Version mismatch.*with 2.1"
        ) as found:
            connected(address, None)
    assert "ray://" in found.value.hint
