"""What a call takes on the host beside its launches: `bazel test --config=benchmark //frontends/compiled/...`."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module

X = torch.randn(4, 8)


def idle(folder, count, args, kwargs):
    """A compiled module of so many layers, whose launches do nothing."""
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(count)), nn.LayerNorm(8)).eval()
    run = compile_module(net, args, kwargs, target="npu", folder=folder)
    program = run.call.program
    program.calls = tuple(replace(each, launch=lambda *_: None) for each in program.calls)
    return run


@pytest.mark.parametrize("layers", [1, 24])
def test_a_call_by_position(benchmark, tmp_path, layers):
    assert benchmark(idle(tmp_path, layers, (X,), {}), X).shape == X.shape


def test_a_call_by_name(benchmark, tmp_path):
    assert benchmark(idle(tmp_path, 1, (), {"input": X}), input=X).shape == X.shape
