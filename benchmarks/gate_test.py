"""Tests the cost of an evaluation by stage: a row for each kind of source, and a reason for each
refused one."""

import json

from benchmarks.gate import EDITED, EMITTED, main, subjects, summary
from ir.reference.formulas import MANY
from search.evaluator.worker import START, TO_CHECK, WAITED


def test_kernels_have_rows_with_the_seconds_of_each_stage(tmp_path):
    out = tmp_path / "gate.json"
    assert (
        main(("--target=cpu", "--kernels=map_id", "--rounds=2", "--at-once=2", f"--out={out}")) == 0
    )
    found = json.loads(out.read_text())
    assert [row["source"] for row in found["rows"][:2]] == [EMITTED, EDITED]
    for row in found["rows"]:
        assert row["accepted"] and row["backend"] == "cpp"
        assert {"build", "check", "time"} <= set(row["seconds"]) and row["setup_s"] > 0
    assert found["secret"] and found["summary"]["accepted"] == len(found["rows"])


def test_no_kernel_begins_when_time_is_up(tmp_path):
    out = tmp_path / "gate.json"
    assert main(("--target=cpu", "--seconds=0", f"--out={out}")) == 1
    assert not out.exists()


def test_kernels_of_fixed_sizes_are_of_gpus_alone():
    fixed = list(subjects((), gpu=True))
    assert not list(subjects((), gpu=False)) and len({s.spec.name for s in fixed}) == len(fixed)
    assert all(not s.sizes and not s.checks for s in fixed)
    assert any(s.numbers < MANY for s in fixed) and any(s.numbers > 100 * MANY for s in fixed)


def test_what_was_refused_or_waited_for_counts_in_no_sum():
    rows = [
        {"source": EMITTED, "accepted": True, "seconds": {"check": 1.0}},
        {"source": EMITTED, "accepted": True, "seconds": {"check": 3.0}},
        {
            "source": EMITTED,
            "accepted": True,
            "seconds": {"check": 9.0, WAITED: 7.0, TO_CHECK: 4.0, START: 0.5},
        },
        {"source": EDITED, "accepted": False, "seconds": {"check": 9.0}},
    ]
    found = summary(rows)
    assert found == {
        "accepted": 3,
        "rows": 4,
        EMITTED: {
            "median_s": 2.0,
            "most_s": 3.0,
            "most_waited_s": 7.0,
            "most_built_s": 4.0,
            "most_start_s": 0.5,
        },
        EDITED: None,
    }
