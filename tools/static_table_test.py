"""Tests the table of build reports: ratios are truncated, failures are listed."""

from tools.results_table import table

ROW = {"registers": 64, "shared_bytes": 1024, "mix.matrix": 8, "occupancy": 0.125, "us": 9.99}
RESULT = {
    "command": "python3 -m benchmarks.static_figures --target=chip --out=x.json",
    "date": "2026-01-02",
    "machine": "a chip",
    "toolchains": {"one": "cc 1", "other": "dd 2"},
    "static": ["one", "other"],
    "summary": {"other": {"kernels": 1, "geometric_mean": 0.9999, "min": 0.9999}},
    "rows": [
        {"kernel": "a", "one": ROW, "other": {**ROW, "us": 10.0, "loop.shared": 3}},
        {"kernel": "b", "one": ROW, "other": {"failure": "it spills"}},
    ],
}


def test_a_row_has_both_and_a_cut_ratio():
    found = table(RESULT)
    assert (
        "| a | 9.99 | 10.00 | 0.99 | 64 / 64 | 1024 / 1024 | 8 / 8 | 0 / 0 | 0 / 3 | 0 / 0 |"
        in found
    )
    assert "| b | 9.99 | failed | - |" in found and "- `b` in `other`: it spills." in found
    assert "geometric mean 0.99, least 0.99." in found and "`one` by cc 1, `other` by dd 2" in found
