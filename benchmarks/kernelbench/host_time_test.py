"""Tests that the host time of a call is that of a call whose launches do nothing."""

import json

import pytest
from triton import knobs
from triton.runtime import driver

from benchmarks.kernelbench.host_time import main

NEW = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x, y):
    tl.store(y, tl.load(x) * 2)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        for _ in range(3):
            scale[(1,)](x, y)
        return y

def get_inputs():
    return [torch.rand(1)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def no_driver(monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "_active", None)
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path / "cache"))


def test_launches_and_operators_of_a_call_are_counted(no_driver, tmp_path, capsys):
    (tmp_path / "new.py").write_text(NEW)
    assert main([str(tmp_path / "new.py")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["launches"] == 3 and found["operators"] == 1
    assert 0 < found["least_us"] <= found["median_us"]
