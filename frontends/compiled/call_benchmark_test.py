"""What a call takes on the host beside its launches: `bazel test --config=benchmark //frontends/compiled/...`."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module

X = torch.randn(4, 8)


def idle(folder, net, args, kwargs):
    """A compiled module whose launches do nothing."""
    run = compile_module(net, args, kwargs, target="npu", folder=folder)
    program = run.call.program
    program.calls = tuple(replace(each, launch=lambda *_: None) for each in program.calls)
    return run


def layers(count):
    return nn.Sequential(*(nn.Linear(8, 8) for _ in range(count)), nn.LayerNorm(8)).eval()


@pytest.mark.parametrize("count", [1, 24])
def test_a_call_by_position(benchmark, tmp_path, count):
    assert benchmark(idle(tmp_path, layers(count), (X,), {}), X).shape == X.shape


def test_a_call_by_name(benchmark, tmp_path):
    assert benchmark(idle(tmp_path, layers(1), (), {"input": X}), input=X).shape == X.shape


def test_a_call_in_training(benchmark, tmp_path):
    """Of eight layers with statistics of their own, three tensors each, which it leaves behind."""
    net = nn.Sequential(*(nn.BatchNorm1d(8) for _ in range(8))).requires_grad_(False)
    assert benchmark(idle(tmp_path, net, (X,), {}), X).shape == X.shape
