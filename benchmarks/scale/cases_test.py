"""Tests the use cases of the model: measurements are read, and compared with predictions."""

import json

import pytest

pytest.importorskip(
    "simpy", reason="PYTHONPATH=$(python3 bazel/make_cluster_site.py requirements_scale.lock)"
)

from benchmarks.scale.__main__ import compared, main, said, summary
from benchmarks.scale.cases import (
    RESULTS,
    device_cases,
    device_times,
    npu_cases,
    stages_of,
)
from benchmarks.scale.nodes import TIME

MEASURED = json.loads((RESULTS / "npu" / "scale.json").read_text(encoding="utf-8"))
MOST = 0.10  # Share of the throughput of a real run.


def test_stages_are_read_as_they_were_written():
    stages = (("build", 0.25), ("rest", 0.0))
    assert stages_of(said(stages)) == stages


@pytest.mark.parametrize("run", MEASURED["runs"], ids=lambda run: f"{run['workers']} workers")
def test_the_stored_error_of_the_model_is_what_it_is_and_small(run):
    stored = {name: run[name] for name in ("kind", "workers", "evaluations", "throughput")}
    found = compared(MEASURED["calibration"], stored)
    assert abs(found["error"]) <= MOST
    assert (found["error"], found["modelled"]) == (run["error"], run["modelled"])


def test_one_run_calibrates_and_others_are_predicted():
    assert [run["workers"] for run in MEASURED["runs"]] == [1, 2, 4, 8]
    assert {run["kind"] for run in MEASURED["runs"]} == {"measured"}
    assert {row["kind"] for row in MEASURED["rows"]} == {"modelled"}


def test_cases_go_to_a_thousand_slots_and_sixty_four_devices():
    cases = npu_cases(MEASURED["calibration"])
    slots = {one.case.nodes * one.case.node.slots for one in cases}
    assert {1, 8, 104, 1000} <= slots
    times, sources = device_times(MEASURED["calibration"])
    assert all("measured" in source for source in sources.values())
    assert all(dict(stages)[TIME] > 0 for stages in times.stages)
    devices = {one.case.nodes * one.case.node.devices for one in device_cases(times, 4)}
    assert devices == {1, 8, 64}


def test_saturation_is_where_no_more_than_five_percent_are_gained():
    rows = [
        {"name": "a", "slots": n, "searches": 1, "throughput": t}
        for n, t in ((1, 1.0), (2, 1.9), (4, 1.95))
    ]
    assert summary(rows) == {"a": {"slots": 2, "searches": 1}}


def test_wrong_use_is_an_error(tmp_path, capsys):
    with pytest.raises(SystemExit) as found:
        main(["model", "--measured=x.json", "--target=moon", f"--out={tmp_path}/x.json"])
    assert found.value.code == 2 and "moon" in capsys.readouterr().err
