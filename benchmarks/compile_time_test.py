"""Tests the benchmark of compile times: its rows, with a small module, and ResNets."""

import json
import sys

import pytest
import torch
from torch import nn

from benchmarks import compile_time
from benchmarks.compile_time import PARTS, timed
from benchmarks.resnet import resnet


def twice():
    one = nn.Linear(6, 6)
    return nn.Sequential(one, one, nn.ReLU()).eval().requires_grad_(False), (torch.randn(3, 6),)


def test_a_row_has_all_parts_and_counts_each_kernel_once():
    row = timed(twice, "null")
    assert (row["target"], row["backend"], row["steps"], row["kernels"]) == ("null", "null", 2, 2)
    for clock in ("wall_s", "cpu_s"):
        assert tuple(row[clock]) == PARTS
        assert row[f"total_{clock}"] == pytest.approx(sum(row[clock].values()), abs=0.01)


def test_a_file_says_how_it_was_had(tmp_path, monkeypatch):
    made = {"module": "encoder", "load": 0.5, "target": "cpu"}
    monkeypatch.setattr(compile_time, "row", lambda *_: dict(made))
    out = tmp_path / "times.json"
    monkeypatch.setattr(sys, "argv", ["x", "--module=encoder", f"--out={out}"])
    assert compile_time.main() == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["rows"] == [made] and found["time_kind"] == "measured"
    assert found["command"].startswith("python3 -m benchmarks.compile_time --module=encoder")


def test_the_resnet_has_the_published_number_of_parameters():
    with torch.device("meta"):
        made = resnet((3, 4, 6, 3))
    assert sum(p.numel() for p in made.parameters()) == 25_557_032
    assert resnet((1, 1), width=4, classes=5)(torch.randn(2, 3, 32, 32)).shape == (2, 5)
