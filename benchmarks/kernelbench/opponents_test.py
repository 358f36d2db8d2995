"""Which modes of PyTorch's compiler a module is raced against."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from benchmarks.kernelbench import opponents as module

SECONDS = 1800.0  # for a mode
MODES = {"compile": {"mode": "default"}, "reduce_overhead": {"mode": "reduce-overhead"}}


class Sharing:
    """Says whether it is within a turn, and how many there were."""

    def __init__(self):
        self.turns, self.inside = 0, False

    @contextmanager
    def __call__(self):
        self.turns, self.inside = self.turns + 1, True
        yield
        self.inside = False


def raced(sharing=nullcontext, model=None):
    venue = SimpleNamespace(modes=MODES)
    model = model or torch.nn.ReLU()
    return module.opponents(model, [torch.ones(2)], venue, tuple(MODES), SECONDS, sharing)


@pytest.mark.parametrize(
    ("took", "names"),
    [(1.0, ["eager", *MODES]), (module.CHEAP * SECONDS + 1, ["eager", "compile"])],
)
def test_a_further_mode_is_compiled_only_where_the_one_before_did_not_take_long(
    monkeypatch, took, names
):
    now = iter([0.0, took, took, took])
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    monkeypatch.setattr(module.torch, "compile", lambda call, **_: call)
    made, failures = raced()
    assert list(made) == names and not failures


def test_a_mode_that_fails_is_told_and_the_next_is_compiled(monkeypatch):
    def fail(call, mode):
        if mode == "default":
            raise RuntimeError("the compiler is ill")
        return call

    monkeypatch.setattr(module.torch, "compile", fail)
    made, failures = raced()
    assert list(made) == ["eager", "reduce_overhead"]
    assert failures == {"compile": "RuntimeError: the compiler is ill"}


def test_each_mode_is_compiled_and_called_in_a_turn_of_its_own(monkeypatch):
    sharing, seen = Sharing(), []

    def compiled(call, **_):
        return lambda x: seen.append(sharing.inside) or call(x)

    monkeypatch.setattr(module.torch, "compile", compiled)
    raced(sharing)
    assert seen == [True] * 4 and sharing.turns == 2 and not sharing.inside


class Counting(torch.nn.Module):
    """It keeps a tensor from call to call."""

    def __init__(self):
        super().__init__()
        self.count = torch.zeros(())

    def forward(self, x):
        self.count = self.count + 1
        return x + self.count


def test_the_mode_that_records_graphs_leaves_what_a_module_keeps(monkeypatch):
    monkeypatch.setattr(module.torch, "compile", lambda call, **_: call)
    model = Counting()
    made, _ = raced(model=model)
    assert model.count == 2  # `compile` ran twice, and nothing else
    made["reduce_overhead"](torch.ones(2))
    assert model.count == 2
