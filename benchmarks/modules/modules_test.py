"""Tests the command with --rehearse at tiny sizes: rows, missing packages, wrong usage, and
continued runs."""

import json
from dataclasses import replace

import pytest
import torch

from benchmarks.modules import __main__ as command
from benchmarks.modules import catalogue
from benchmarks.modules.catalogue import ENTRIES, chosen
from ir.errors import KernelError


@pytest.fixture
def options(tmp_path):
    return [
        "--target=h200",
        "--tiny",
        "--rehearse",
        f"--out={tmp_path}/out.json",
        f"--work={tmp_path}/work",
        "--workers=1",
        "--limit=1800",
        "--seed=5",
        "--baselines=",
    ]


def result(tmp_path):
    return json.loads((tmp_path / "out.json").read_text())


def test_a_module_is_compiled_checked_and_timed_once(options, tmp_path, capsys):
    assert command.main([*options, "--only=swiglu_rmsnorm"]) == 0
    table = result(tmp_path)
    (row,) = table["rows"]
    assert row["correct"] and row["against"] == "float64"
    assert row["time_kind"] == "rehearsed" and row["correct_by"] == "interpreter"
    assert row["kernels"] >= 1 and row["left_to_torch"] == [] and len(row["draws"]) == 3
    assert row["speedups"] == {"eager": 1.0} and row["called_as"] == "call"
    assert table["seed"] == 5 and table["summary"]["correct"] == 1
    capsys.readouterr()
    assert command.main([*options, "--only=swiglu_rmsnorm"]) == 0  # Nothing is left to do.
    assert "started" not in capsys.readouterr().err
    assert result(tmp_path)["rows"] == [row]


@pytest.mark.slow
def test_a_module_is_searched_for_and_its_row_has_both_figures(options, tmp_path, capsys):
    options += ["--only=swiglu_rmsnorm", "--seconds-each=6"]
    assert command.main(options) == 0
    table = result(tmp_path)
    (row,) = table["rows"]
    found = row["searched"]
    assert row["correct"] and found["correct"] and found["asked_s"] == 6.0
    assert (row["speedup"], found["speedup"]) == (1.0, 1.0) and found["us"] == row["us"]
    assert {"import", "ways", "search", "build"} <= set(found["phases_s"]) and "start_s" in found
    assert table["summary"]["correct_after_search"] == 1
    capsys.readouterr()
    assert command.main(options) == 0  # Nothing is left to do.
    assert "a search of" not in capsys.readouterr().err and result(tmp_path)["rows"] == [row]


def test_a_module_whose_package_is_missing_is_named(options, tmp_path, capsys, monkeypatch):
    absent = replace(ENTRIES["lstm"], package="no_such_package")
    monkeypatch.setattr(catalogue, "ENTRIES", {**ENTRIES, "lstm": absent})
    assert command.main([*options, "--only=lstm"]) == 1
    (row,) = result(tmp_path)["rows"]
    assert row["not_run"] == "package no_such_package missing" and not row["correct"]
    assert result(tmp_path)["summary"]["run"] == 0
    assert "lstm: not run: package no_such_package missing" in capsys.readouterr().err


def test_a_module_that_takes_too_long_is_a_row(options, tmp_path):
    run = command._Run(
        command._parser().parse_args([*options, "--limit=0.01"]), {"correct_by": "x"}
    )
    assert run.one(ENTRIES["lstm"])
    (row,) = result(tmp_path)["rows"]
    assert "longer than 0.01 s" in row["reason"] and not row["correct"]


def test_what_an_interrupted_run_ended_itself_is_no_row(options, tmp_path):
    run = command._Run(command._parser().parse_args(options), {"correct_by": "x"})
    run.crew.end()
    assert not run.put({"module": "lstm", "correct": False, "reason": "killed"})
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--only=lstn", "there is no module `lstn`"),
        ("--target=h20", "h20"),
        ("--baselines=compil", "`compil` is no baseline"),
    ],
)
def test_wrong_use_is_told(options, tmp_path, capsys, given, said):
    assert command.main([*options, given]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_without_the_chip_nothing_is_measured(options, tmp_path, capsys):
    options.remove("--rehearse")
    assert command.main(options) == 2
    assert "there is no `h200` in this computer" in capsys.readouterr().err


def test_there_are_twenty_and_long_ones_start_first():
    assert len(ENTRIES) == 20
    assert [e.name for e in chosen("lstm,bert_layer, resnet50")] == [
        "resnet50",
        "lstm",
        "bert_layer",
    ]
    with pytest.raises(KernelError, match="no module"):
        chosen("bert")


@pytest.mark.parametrize("name", [n for n, e in ENTRIES.items() if e.package == "torch"])
def test_plain_modules_run_in_their_dtype_and_depend_on_their_arguments(name):
    made = ENTRIES[name].made(1, "cpu", True)
    first, second = (made.module(*made.arguments(seed)) for seed in (1, 2))
    assert first.dtype == made.dtype and bool(first.isfinite().all())
    assert not torch.equal(first, second)
    assert torch.equal(first, made.module(*made.arguments(1)))
