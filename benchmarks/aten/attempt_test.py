"""Tests that an attempt leaves a row, and that the command writes a file of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.aten import attempt as module
from benchmarks.aten.__main__ import main, wanted
from benchmarks.aten.attempt import OperatorAttempt, attempt
from benchmarks.aten.call import OperatorCall
from ir.errors import KernelError
from testing.slow import slow

ROOT = Path(__file__).parents[2]


def tried(tmp_path, operator, dtype="f32", samples=1):
    return attempt(OperatorAttempt(operator, dtype, "npu_small", samples, tmp_path / "row.json"))


@pytest.mark.parametrize("operator", ["mul", "polar", "allclose", "contiguous", "rand", "sort"])
def test_an_operator_becomes_kernels_that_give_what_it_gives(tmp_path, operator):
    row = tried(tmp_path, operator)
    assert (row["verdict"], row["passed"], row["samples"]) == ("pass", 1, 1), row
    assert row["judged_by"] == ("properties" if operator == "rand" else "values")


@pytest.mark.parametrize("operator", [slow("argmax"), slow("max"), "topk"])
def test_extrema_of_nan_and_infinities_are_pytorchs(tmp_path, operator):
    row = tried(tmp_path, operator, samples=4)
    assert (row["verdict"], row["passed"], row["samples"]) == ("pass", 4, 4), row


@pytest.mark.parametrize(
    ("function", "verdict", "reason"),
    [
        (torch.linalg.svdvals, "not expressible", "import: "),
        (lambda x: x.new_tensor(3.0) if x.sum() > 0 else x, "not expressible", "import: "),
        (lambda x: x.exp() if x.dtype != torch.float64 else [].pop(), "fail", "IndexError"),
    ],
)
def test_what_goes_wrong_is_the_reason(tmp_path, monkeypatch, function, verdict, reason):
    wrong, right = (
        OperatorCall(function, (torch.ones(2, 2),), {}),
        OperatorCall(torch.exp, (torch.ones(2),), {}),
    )
    monkeypatch.setattr(module, "calls", lambda *_: [right, wrong])
    row = tried(tmp_path, "exp")
    assert (row["verdict"], row["passed"]) == (verdict, 1), row
    assert row["reason"].startswith("([2, 2]): ") and reason in row["reason"]


def test_wrong_results_fail(tmp_path, monkeypatch):
    calls = iter([torch.exp, torch.sin, torch.sin])
    call = OperatorCall(lambda x: next(calls)(x), (torch.ones(3),), {})
    monkeypatch.setattr(module, "calls", lambda *_: [call])
    row = tried(tmp_path, "exp")
    assert row["verdict"] == "fail" and "check: an element is off by" in row["reason"]


def test_the_command_writes_rows_and_goes_on(tmp_path):
    out = tmp_path / "r.json"
    command = [
        "--target=npu_small",
        f"--out={out}",
        "--samples=1",
        "--only=neg",
        "--operator-seconds=1800",
    ]
    assert main([*command, "--dtypes=f32"]) == 0
    first = json.loads(out.read_text())["rows"]
    assert [(r["operator"], r["dtype"], r["verdict"]) for r in first] == [("neg", "f32", "pass")]
    assert main([*command, "--dtypes=f32,bf16"]) == 0
    found = json.loads(out.read_text())
    assert found["rows"][0] == first[0] and found["summary"]["operators_passed"] == 1
    assert found["summary"]["all"] == {"rows": 2, "pass": 2}


def test_a_process_that_takes_too_long_is_a_failed_row(tmp_path):
    out = tmp_path / "r.json"
    command = ["--target=npu_small", f"--out={out}", "--only=neg", "--operator-seconds=0.001"]
    assert main([*command, "--dtypes=f32"]) == 1
    (row,) = json.loads(out.read_text())["rows"]
    assert row["verdict"] == "fail" and "longer than" in row["reason"]


def test_pairs_are_chosen_by_name_and_wrong_names_are_errors(capsys, tmp_path):
    pairs = list(wanted("bitwise_and,add", ""))
    assert pairs[:2] == [("add", "f32"), ("bitwise_and", "i64")]
    assert set(pairs) > {("add", "bf16"), ("add", "i64"), ("bitwise_and", "b8")}
    with pytest.raises(KernelError, match="`ad` is not there"):
        list(wanted("ad", ""))
    assert main(["--target=npu", "--out=x.json", "--dtypes=f33"]) == 2
    assert "`f33`" in capsys.readouterr().err


def test_where_pytorch_has_a_device_its_tables_wait_for_the_attempt():
    text = (
        "import sys, torch; torch.version.cuda = '13.0'; import benchmarks.aten.attempt; "
        "sys.exit('torch.testing._internal.common_methods_invocations' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", text], cwd=ROOT).returncode == 0
