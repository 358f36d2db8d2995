"""Tests which modes of PyTorch's compiler a module is raced against."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from benchmarks.device_lock import RunningTime
from benchmarks.kernelbench import opponents as module

SECONDS = 1800.0  # Limit of a mode.
MODES = {"compile": {"mode": "default"}, "reduce_overhead": {"mode": "reduce-overhead"}}


def raced(model=None):
    venue = SimpleNamespace(modes=MODES)
    model = model or torch.nn.ReLU()
    return module.opponents(model, [torch.ones(2)], venue, tuple(MODES), SECONDS)


@pytest.mark.parametrize(
    ("took", "names"),
    [(1, ["eager", *MODES]), (int(module.CHEAP * SECONDS) + 1, ["eager", "compile"])],
)
def test_a_further_mode_is_compiled_only_where_the_one_before_did_not_take_long(
    monkeypatch, took, names
):
    ran = RunningTime(took)
    monkeypatch.setattr(module, "running_limit", lambda seconds: nullcontext(ran))
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


class Counting(torch.nn.Module):
    """It keeps a tensor between calls."""

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
    assert model.count == 2  # `compile` ran twice, and nothing else.
    made["reduce_overhead"](torch.ones(2))
    assert model.count == 2
