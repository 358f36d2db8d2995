"""Tests that the sweep distinguishes correct problems from wrong ones, and says why one failed."""

import json

from benchmarks.kernelbench.reference import main

RIGHT = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(16)
        self.last = torch.zeros(16)

    def forward(self, x):
        self.last = self.last + x.sum(0)
        return torch.relu(self.norm(x)) + self.last

rows = 1 << 22

def get_inputs():
    return [torch.rand(1048576, 16)]

def get_init_inputs():
    return []
"""
RANDOM = RIGHT.replace("torch.relu(self.norm(x))", "torch.dropout(self.norm(x), 0.3, True)")
NO_RULE = RIGHT.replace("torch.relu(self.norm(x))", "torch.linalg.svdvals(x).sum()")


def problems(tmp_path, **sources):
    folder = tmp_path / "level1"
    folder.mkdir()
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    return ["--problems", str(tmp_path), "--out", str(tmp_path / "out.json"), "--level", "1"]


def rows(tmp_path):
    return json.loads((tmp_path / "out.json").read_text())["rows"]


def test_right_problems_are_compared_and_others_have_a_reason(tmp_path, capsys):
    options = problems(tmp_path, a=RIGHT, b=NO_RULE, c="broken(")
    assert main(options) == 1
    right, unknown, broken = rows(tmp_path)
    assert right["correct"] and right["error"] < 1e-6 and right["mutations"] == 4
    assert right["elements"] <= 200_000
    assert "svd" in unknown["reason"] and not unknown["correct"]
    assert not broken["correct"]
    assert "1 of 3 problems" in capsys.readouterr().out


def test_random_problems_are_compared_with_the_same_draws(tmp_path):
    assert main(problems(tmp_path, a=RANDOM)) == 0
    (row,) = rows(tmp_path)
    assert row["random"] and row["mutations"] == 4 and row["error"] < 1e-6


def test_whole_problems_are_imported_without_memory(tmp_path):
    assert main([*problems(tmp_path, a=RIGHT.replace("1048576", "1 << 40")), "--whole"]) == 0
    assert rows(tmp_path)[0]["equations"] > 3
