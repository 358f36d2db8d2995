"""Tests that an attempt leaves a row: correct and wrong results, and the last stage."""

import json

import pytest

from benchmarks.kernelbench.__main__ import main
from benchmarks.kernelbench.attempt import ProblemAttempt, attempt

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x):
        return {body}

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return [8]
"""
RIGHT = "torch.tanh(self.norm(x))"


def tried(tmp_path, body):
    path = tmp_path / "1_Norm.py"
    path.write_text(PROBLEM.format(body=body))
    return attempt(ProblemAttempt(path, "npu_small", False, tmp_path / "row.json"))


def test_a_problem_becomes_kernels_that_give_what_it_gives(tmp_path):
    row = tried(tmp_path, RIGHT)
    assert row["correct"], row
    assert row["shapes"] == [[4, 8]] and row["against"] == "module" and row["kernels"] >= 1
    took = {f"{stage}_s" for stage in ("import", "schedule", "lower", "build", "run")}
    assert row["rel_err"] < 1e-6 and took < set(row)
    assert json.loads((tmp_path / "row.json").read_text()) == row


@pytest.mark.parametrize(
    "body", ["torch.dropout(self.norm(x), 0.5, True)", "x * torch.rand(4, 1) + torch.randn(4, 8)"]
)
def test_random_numbers_are_those_of_the_equations_in_pytorch_too(tmp_path, body):
    row = tried(tmp_path, body)
    assert row["correct"] and row["against"].startswith("module, with the draws"), row
    assert 0 < row["reference_rel_err"] < 1e-6


@pytest.mark.parametrize(
    ("body", "stage", "reason"),
    [
        ("x / torch.tensor(self.missing)", "import", "missing"),
        ("torch.linalg.eigvalsh(x[:, :4])", "import", "_linalg_eigh"),
        ("x.double() * 2", "schedule", "f64"),
    ],
)
def test_what_fails_says_where(tmp_path, body, stage, reason):
    row = tried(tmp_path, body)
    assert not row["correct"] and row["stage"] == stage and reason in row["reason"], row


def test_the_command_writes_rows_and_leaves_those_that_are_done(tmp_path, capsys):
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Norm.py").write_text(PROBLEM.format(body=RIGHT))
    (tmp_path / "level1" / "2_Gone.py").write_text("import os\nos._exit(3)\n")
    out = tmp_path / "r.json"
    asked = [
        f"--problems={tmp_path}",
        "--level=1",
        "--target=npu_small",
        f"--out={out}",
        "--problem-seconds=1800",
    ]
    assert main(asked) == 1
    first = json.loads(out.read_text())
    good, gone = first["rows"]
    assert good["correct"] and good["problem"] == "1_Norm" and good["correct_by"] == "simulator"
    assert not gone["correct"] and "ended with 3" in gone["reason"]
    assert first["summary"]["level 1"]["correct"] == 1
    capsys.readouterr()
    main(asked)
    assert "1_Norm" not in capsys.readouterr().err


def test_wrong_use_is_said(tmp_path, capsys):
    asked = [f"--problems={tmp_path}", "--level=1", "--target=npu_small", "--out=r.json"]
    assert main(asked) == 2 and "there are no problems" in capsys.readouterr().err
