"""Tests the command's report on published cheats, with substitutes for their repositories."""

import json
from dataclasses import replace

import pytest

from benchmarks import published_cheats
from benchmarks.foreign.published import (
    CHEATS,
    CUDA_L1,
    KERNELBENCH,
    KERNELS,
    ROWS,
    SQUARE,
    as_expected,
    texts,
)
from benchmarks.published_cheats import main
from ir.errors import KernelError

CONSTANT = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return (x - x).sum(1)

def get_inputs():
    return [torch.randn(3, 4)]

def get_init_inputs():
    return []
"""
ZEROS = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros(3)
"""
NAMED = {c.name: c for c in CHEATS}


@pytest.fixture
def folders(tmp_path):
    """Checkouts of both repositories."""
    bench, rows = tmp_path / "bench", tmp_path / "rows"
    for file in (bench / SQUARE, bench / KERNELS / "zero_out_kernel.py", rows / ROWS):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("N = 2048 * 2\n")
    row = {"level_id": 2, "task_id": 66, "ref_code": CONSTANT, "custom_code": ZEROS}
    (rows / ROWS).write_text(json.dumps(row) + "\n")
    return {KERNELBENCH: bench, CUDA_L1: rows}


def test_a_cheat_is_judged_once_and_its_row_is_kept(folders, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(published_cheats, "CHEATS", (NAMED["ones"],))
    out = tmp_path / "out.json"
    words = ["--cuda-l1", str(folders[CUDA_L1]), "--out", str(out), "--device", "cpu"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert "refused: ones (CUDA-L1): bad input" in first and "whatever the inputs" in first
    (row,) = json.loads(out.read_text())["rows"]
    assert row["as_expected"] and str(tmp_path) not in out.read_text()
    monkeypatch.setattr(published_cheats, "judged", None)
    assert main(words) == 0 and capsys.readouterr().out == first


def test_a_refusal_for_another_reason_is_not_as_expected():
    cheat = NAMED["another stream"]
    assert as_expected(cheat, "clocks disagree", "9 us by the judge's clock")
    assert not as_expected(cheat, "toolchain", "toolchain absent: nvcc")
    assert not as_expected(cheat, "clocks disagree", "")
    assert not as_expected(cheat, "accepted", "")


def test_sizes_change_in_both_texts_without_a_gpu(folders):
    cheat = replace(NAMED["inputs set to zero"], on_cpu={"2048 * 2": "160"})
    assert texts(cheat, folders, on_cpu=True).problem == "N = 160\n"
    assert texts(cheat, folders, on_cpu=True).solution == "N = 160\n"
    assert texts(cheat, folders, on_cpu=False).problem == "N = 2048 * 2\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("inputs set to zero", "another version"),  # It lacks the text to replace.
        ("uninitialised memory", "cannot read"),
        ("zeros", "no row of level and task"),
        ("another stream", "needs a GPU"),
    ],
)
def test_what_is_not_there_is_an_error(folders, name, said):
    (folders[KERNELBENCH] / KERNELS / "non_default_stream_kernel.py").write_text("")
    with pytest.raises(KernelError, match=said):
        texts(NAMED[name], folders, on_cpu=True)


def test_wrong_use_is_bad_input(tmp_path, capsys):
    assert main([]) == 2 and "no cheat to judge" in capsys.readouterr().err
    assert main(["--cuda-l1", str(tmp_path), "--device", "cpu"]) == 2
    (tmp_path / "r.json").write_text('{"device": "another", "rows": []}')
    words = ["--cuda-l1", str(tmp_path), "--device", "cpu", "--out", str(tmp_path / "r.json")]
    assert main(words) == 2 and "`another`" in capsys.readouterr().err
