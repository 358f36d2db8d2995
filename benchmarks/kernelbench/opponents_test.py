"""Which modes of PyTorch's compiler a module is raced against."""

from types import SimpleNamespace

import pytest
import torch

from benchmarks.kernelbench import opponents as module

MODES = {"compile": {"mode": "default"}, "reduce_overhead": {"mode": "reduce-overhead"}}


@pytest.mark.parametrize(
    ("took", "names"),
    [(1.0, ["eager", *MODES]), (module.CHEAP_SECONDS + 1, ["eager", "compile"])],
)
def test_a_further_mode_is_compiled_only_where_the_one_before_did_not_take_long(
    monkeypatch, took, names
):
    now = iter([0.0, took, took, took])
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    monkeypatch.setattr(module.torch, "compile", lambda call, **_: call)
    made, failures = module.opponents(
        torch.relu, [torch.ones(2)], SimpleNamespace(modes=MODES), tuple(MODES), 1800.0
    )
    assert list(made) == names and not failures


def test_after_a_mode_that_fails_no_further_one_is_compiled(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("the compiler is ill")

    monkeypatch.setattr(module.torch, "compile", fail)
    made, failures = module.opponents(
        torch.relu, [torch.ones(2)], SimpleNamespace(modes=MODES), tuple(MODES), 1800.0
    )
    assert list(made) == ["eager"]
    assert failures == {"compile": "RuntimeError: the compiler is ill"}
