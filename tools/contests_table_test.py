"""Tests the tables of a contest: the best candidate, all candidates, and the failures."""

from tools.contests_table import contests
from tools.results_table import table

GOOD = {"label": "1_wide", "correct": True, "us": 20.0}
LOST = {"label": "2_deep", "correct": False, "reason": "an element is off"}
ROW = {
    "kernel": "matmul",
    "dtype": "bf16",
    "shape": {"M": 8, "N": 4},
    "candidate": "1_wide",
    "candidates": [GOOD, LOST],
    "correct": True,
    "us": 20.0,
    "tflops": 123.4,
    "fastest": "eager_cudnn",
    "baselines_us": {"eager": None, "eager_cudnn": 19.0},
    "failures": {"eager": "OutOfTime: it took longer"},
    "speedup": 0.95,
    "aim": 0.9,
    "rel_err": 0.00123,
    "reference_rel_err": 0.002,
}
NONE = {**ROW, "correct": False, "candidates": [LOST], "speedup": None, "failures": {}}
RESULT = {
    "command": "python3 -m benchmarks.contest --out=x",
    "date": "2026-11-27",
    "machine": "NVIDIA",
    "driver": "1",
    "versions": {"torch": "2"},
    "built_by": {"cutedsl": "cutedsl 4"},
    "schedules": "h200",
    "summary": {},
    "rows": [ROW, NONE],
}


def test_a_row_has_its_best_candidate_and_the_fastest_function():
    text = "\n\n".join(contests(RESULT))
    wanted = "| matmul | M=8 N=4 | 1_wide | 20.0 | 123 | `eager_cudnn` | 19.0 | 0.95 | 0.9 | 0.0012 | 0.002 |"
    assert wanted in text
    assert "| none is right | - | - | `eager_cudnn` | 19.0 | - | 0.9 | - | - |" in text


def test_all_candidates_and_what_failed_are_told():
    text = "\n\n".join(contests(RESULT))
    assert "- matmul M=8 N=4: 1_wide 20.0, 2_deep failed; `eager_cudnn` 19.0" in text
    assert "- `2_deep` of matmul M=8 N=4: an element is off." in text
    assert "- `eager` of matmul M=8 N=4: OutOfTime: it took longer." in text


def test_a_result_file_with_candidates_is_a_contest():
    assert table(RESULT) == "\n\n".join(contests(RESULT)) + "\n"
