"""Tests that checks are timed by processor time, each in its own process."""

import json
import os
import time

import pytest

from benchmarks import check_times
from benchmarks.check_times import main, ratios, require_no_device, seconds
from ir.errors import KernelError

ROWS = [
    {"kernel": "a", "one": {"cpu_s": 2.0}, "other": {"cpu_s": 1.0}},
    {"kernel": "b", "one": {"cpu_s": 1.0}, "other": {"cpu_s": 2.0}},
    {"kernel": "c", "one": {"cpu_s": 1.0}, "other": {"failure": "check"}},
]


def work():
    """Keeps the processor busy for a while."""
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass


def nested():
    """Does the same in a child process."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    os.waitpid(child, 0)


def test_ratios_are_of_the_kernels_that_both_checked():
    assert ratios(ROWS, "one", "other") == {
        "all": 1.0,
        "geometric_mean": 1.0,
        "max": 2.0,
        "failed": ["c"],
    }
    assert ratios(ROWS[2:], "one", "other")["all"] is None


def test_seconds_are_of_the_processor_with_those_of_children():
    assert seconds(lambda: time.sleep(0.3)) < 0.2
    assert seconds(work) >= 0.2 and seconds(nested) >= 0.2


def test_what_fails_has_no_time(capfd):
    assert seconds(lambda: {}["absent"]) is None
    assert "check_times: KeyError: 'absent'" in capfd.readouterr().err


def test_a_kernel_has_a_row_with_the_time_of_each_backend(tmp_path):
    out = tmp_path / "found.json"
    words = ("--target=h200", "--kernels=map_id", "--rounds=1", f"--out={out}")
    assert main(words) == 0
    found = json.loads(out.read_text())
    assert found["checked_through"] == ["triton", "cuda", "cutedsl"]
    (row,) = found["rows"]
    assert row["kernel"] == "map_id" and len(row["checks"]) > 1
    assert row["triton"]["cpu_s"] > 0 and row["cuda"]["cpu_s"] > 0
    assert found["summary"]["cuda"]["failed"] == []


def test_a_wrong_kernel_is_no_time(monkeypatch, tmp_path):
    def wrong(backend, *more):
        if backend.manifest.name == "cuda":
            raise ValueError("it is wrong")

    monkeypatch.setattr(check_times, "checked", wrong)
    out = tmp_path / "found.json"
    main(("--target=h200", "--kernels=map_id", "--rounds=2", f"--out={out}"))
    (row,) = json.loads(out.read_text())["rows"]
    assert row["cuda"] == {"failure": "check"} and "cpu_s" in row["triton"]


def test_wrong_use_is_said(tmp_path):
    with pytest.raises(KernelError, match="no kernel `nothing`"):
        main(["--target=h200", f"--out={tmp_path / 'x'}", "--kernels=nothing"])
    with pytest.raises(KernelError, match="`one` checks by device here"):
        require_no_device({"one": {"correct_by": "device"}})
