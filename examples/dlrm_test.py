"""The example runs to its end, and is as close to float64 as PyTorch is."""

import json
import re

import pytest

from examples.dlrm import main
from testing.slow import slow


@pytest.mark.parametrize("target", ["npu", slow("mi300")])
def test_the_model_is_computed_by_kernels(target, capsys):
    assert main([f"--target={target}", "--seed=3"]) == 0
    said = capsys.readouterr().out
    ours, theirs = map(float, re.findall(r": (\S+e-\d+)", said))
    assert ours <= 4 * theirs + 1e-6, said


@pytest.mark.slow
def test_the_race_can_be_rehearsed(tmp_path):
    out = tmp_path / "dlrm.json"
    assert main(["--target=h200", "--rehearse", f"--out={out}"]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["correct"] and row["time_kind"] == "rehearsed" and row["rel_err"] < 1e-5
    assert set(row["baselines_us"]) == {"eager", "compile", "reduce_overhead", "max_autotune"}


def test_a_rehearsal_needs_a_file(capsys):
    assert main(["--target=h200", "--rehearse"]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_target_that_is_not_there_is_told(capsys):
    assert main(["--target=none"]) == 2
    assert "none" in capsys.readouterr().err
