"""Tests the counts of searches, and the placement of their rows."""

import json
import subprocess
import threading

import pytest

from benchmarks import throughput
from benchmarks.throughput import counted, kernel_words, line, main
from search.cli.arguments import arguments
from search.core.evaluation import Evaluation, Failure
from search.core.stored import StoredEvent, StoredRun
from search.core.testing import SETTINGS

OUTCOMES = {
    "a": Evaluation(5.0, "measured", "device", seconds={"build": 1.0, "alone turns": 0.5}),
    "b": Evaluation(4.0, "measured", "device"),  # Of an equal source.
    "c": Failure("time", "slow", "it takes long", {"build": 2.0, "alone turns": 0.5}, us=9.0),
    "d": Failure("build", "refused", "no", {"build": 3.0}),
    "e": Failure("build", "refused", "it was never told", {"build": 3.0}),
}


def run(seconds):
    events = [StoredEvent("told", key, seconds, "") for key in "abcd"]
    events.append(StoredEvent("same", "b", seconds, "a"))
    return StoredRun("run", SETTINGS, {}, (), OUTCOMES, tuple(events))


def test_what_was_told_is_counted_and_stages_are_means_of_what_was_evaluated():
    found = counted([run(2.0)])
    assert (found["evaluations"], found["per_second"], found["best_us"]) == (4, 2.0, 4.0)
    assert (found["correct"], found["slow"], found["failed"], found["same_source"]) == (2, 1, 1, 1)
    assert found["alone_share"] == 0.5
    assert found["seconds_each"]["correct"] == {"build": 1.0, "alone turns": 0.5}
    assert found["seconds_each"]["slow"]["build"] == 2.0


def test_the_runs_of_a_module_are_counted_together():
    found = counted([run(2.0), run(6.0)])
    assert (found["runs"], found["evaluations"], found["per_second"]) == (2, 8, 1.0)
    assert "best_us" not in found


def test_a_command_is_one_of_a_user(tmp_path):
    asked = throughput._parser().parse_args(["--target=h200", "--out=o.json", "--workers=16"])
    _, program, *words = kernel_words("softmax", asked, tmp_path / "s.db")
    assert program == "search.evolve"
    found = arguments(words, "h200", "softmax")
    assert (found.workers, found.seconds, found.kernels) == (16, 25.0, ("softmax",))


def test_rows_are_written_and_a_store_that_is_there_is_not_gone_on_from(tmp_path, monkeypatch):
    rows = {"softmax": {"kernel": "softmax", **counted([run(2.0)])}}
    rows["x"] = {"kernel": "x", "reason": "no"}
    monkeypatch.setattr(throughput, "row", lambda name, *given: rows[name])
    words = ["--target=h200", f"--out={tmp_path / 't.json'}", "--workers=2"]
    assert main([*words, "--kernels=softmax", "--modules=x"]) == 1
    written = json.loads((tmp_path / "t.json").read_text())
    assert [each["kernel"] for each in written["rows"]] == ["softmax", "x"]
    assert "4 in 2.0 s, 2.0 a second" in line(written["rows"][0])
    assert line(written["rows"][1]) == "x: FAILED, no"
    (tmp_path / "t" / "softmax.db").touch()
    with pytest.raises(Exception, match="would go on from it"):
        main([*words, "--kernels=softmax"])


def test_searches_go_to_gpus_that_are_free_and_see_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv(throughput.VISIBLE, "2,5,7")
    both, used, seen = threading.Barrier(2, timeout=60.0), [], []

    def ended(command, env, **_):
        used.append(env[throughput.VISIBLE])
        if len(used) <= 2:  # Two at a time, in any order.
            both.wait()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(throughput.subprocess, "run", ended)
    monkeypatch.setattr(throughput, "utilization", lambda number: seen.append(number))
    monkeypatch.setattr(throughput, "SAMPLE", 0.0)
    out = tmp_path / "t.json"
    words = ["--target=h200", f"--out={out}", "--workers=2", "--gpus=2"]
    assert main([*words, "--kernels=softmax,layer_norm,map_id"]) == 1
    assert set(used[:2]) == {"2", "5"} and set(used) == {"2", "5"} and len(used) == 3
    assert set(seen) <= {2, 5}
    rows = json.loads(out.read_text())["rows"]
    assert [each["kernel"] for each in rows] == ["softmax", "layer_norm", "map_id"]
    assert {each["reason"] for each in rows} == {"nothing is stored"}
    with pytest.raises(Exception, match="4 GPUs"):
        main([*words[:-1], "--gpus=4"])


def test_all_starter_kernels_are_searched_for(tmp_path):
    asked = throughput._parser().parse_args(["--target=h200", "--out=o.json", "--workers=16"])
    assert len(asked.kernels.split(",")) == 14
