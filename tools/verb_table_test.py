"""Tests the table of single decisions: ratios are relative to a topic's first variant, and failures
show reasons."""

from tools.verb_table import verbs

ROW = dict(topic="grid", kernel="matmul", sizes=dict(M=8, N=9), time_kind="measured", reason="")
RESULT = dict(
    command="python3 -m benchmarks.verb_effects --target=h200",
    date="2026-11-25",
    machine="NVIDIA H200",
    driver="580",
    versions=dict(torch="2.11"),
    toolchain="nvrtc 13.0",
    correct_by="device",
    rows=[
        {**ROW, "variant": "one", "us": 10.0, "figures": dict(registers=40.0, shared_bytes=1024.0)},
        {**ROW, "variant": "other", "us": 8.0, "figures": dict(registers=48.0)},
        {**ROW, "variant": "wrong", "us": None, "reason": "it does not fit"},
        {**ROW, "topic": "cache", "variant": "none", "us": 5.0},
    ],
)


def test_rows_are_over_the_first_of_their_topic():
    origin, table = verbs(RESULT)
    assert "driver 580, torch 2.11, nvrtc 13.0. Correct by device" in origin
    assert table.splitlines()[2:] == [
        "| grid | matmul M=8 N=9 | one | 10.0 | 1.00 | 40 | 1024 |",
        "|  |  | other | 8.0 | 1.25 | 48 | 0 |",
        "|  |  | wrong | it does not fit | - | 0 | 0 |",
        "| cache | matmul M=8 N=9 | none | 5.0 | 1.00 | 0 | 0 |",
    ]
