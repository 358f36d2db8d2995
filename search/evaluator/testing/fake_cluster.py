"""A cluster without an engine, for tests: slots wait for the test, or evaluate in threads."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from importlib.machinery import ModuleSpec
from threading import Thread
from types import ModuleType, SimpleNamespace

from search.core.evaluation import Evaluation, to_json
from search.evaluator.cluster import Node
from search.evaluator.shares import Shares
from search.evaluator.slot import Opened, Slot

LIMITS = {"tongue": {"seconds": 10.0}}
CHIP = {"correct_by": "emulator", "time_kind": "modelled", "toolchain": "tongue 1"}


class Gone(Exception):
    """A slot is lost; the text says how."""


def node(name, **resources):
    """A node with one core by default."""
    return Node(name, f"host-{name}", {"CPU": 1.0, **resources})


def opened(name, contexts="same", **here):
    """The properties of a slot on a node."""
    environment = {"backends": {"tongue": CHIP | here}, "limits": LIMITS}
    return Opened(name, f"host-{name}", {"tongue": contexts}, environment)


def right(us=5.0):
    """The outcome of a correct candidate, as a slot sends it."""
    return to_json(Evaluation(us, "modelled", "emulator"))


def engage(monkeypatch, cluster):
    """Makes `--cluster` use this cluster for any address, as if Ray were installed."""
    ray = ModuleType("ray")
    ray.__spec__ = ModuleSpec("ray", None)
    monkeypatch.setitem(sys.modules, "ray", ray)
    engine = SimpleNamespace(connected=lambda address, workers: cluster)
    monkeypatch.setitem(sys.modules, "search.evaluator.ray_cluster", engine)


class WaitingSlot:
    """Does nothing until a test sets its result."""

    def __init__(self, resources, without):
        self.resources, self.without = resources, without
        self.opening, self.asked, self.ended = Future(), [], False

    def open(self, benches):
        return self.opening

    def evaluate(self, asked, texts):
        self.asked.append((asked, texts, Future()))
        return self.asked[-1][2]

    def end(self):
        self.ended = True

    @property
    def answer(self):
        """The future of the last request."""
        return self.asked[-1][2]


class ThreadSlot:
    """Evaluates in a thread of this process, through `Slot`."""

    def __init__(self, name, dies=0):
        self.name, self.dies, self.slot = name, dies, Slot()

    def open(self, benches):
        return self._later(lambda: self.slot.open(self.name, f"host-{self.name}", benches))

    def evaluate(self, asked, texts):
        if self.dies:
            self.dies -= 1
            return self._later(self._die)
        return self._later(lambda: self.slot.evaluate(asked, *texts))

    def end(self):
        if self.slot._local is not None:
            self.slot._local.close()

    def _die(self):
        raise Gone("its node ended")

    def _later(self, work):
        future = Future()

        def run():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        Thread(target=run, daemon=True).start()
        return future


class FakeCluster:
    """See `Cluster`. making: makes a slot; WaitingSlot by default."""

    address = "fake"

    def __init__(self, *nodes, making=WaitingSlot, shares=None):
        self.alive, self.making = list(nodes), making
        self.shares = shares or Shares()
        self.slots, self.store = [], []

    def nodes(self):
        return self.alive

    def kept(self, data):
        self.store.append(data)
        return data

    def slot(self, resources, without):
        self.slots.append(self.making(resources, without))
        return self.slots[-1]

    def share(self, pool, search, wanted, capacity):
        future = Future()
        future.set_result(self.shares.share(pool, search, wanted, capacity))
        return future

    def leave(self, pool, search):
        self.shares.leave(pool, search)

    def loss(self, error):
        return str(error) if isinstance(error, Gone) else ""

    def close(self):
        return
