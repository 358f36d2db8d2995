"""Tests the table of published figures: errors have signs, and each source appears once."""

from tools.results_table import table

ROW = {
    "what": "a library",
    "sizes": {"M": 8, "K": 4},
    "published_us": 10.0,
    "source": "A paper",
    "url": "https://a.example/paper",
    "one": {"us": 12.5, "error": 0.25},
    "other": {"failure": "it spills"},
}
RESULT = {
    "command": "python3 -m benchmarks.published --target=chip --out=x.json",
    "date": "2026-01-02",
    "machine": "a chip",
    "toolchains": {"one": "cc 1", "other": "dd 2"},
    "published": ["one", "other"],
    "summary": {"one": 0.8999},
    "rows": [ROW, {**ROW, "one": {"us": 9.0, "error": -0.1}, "source": "the same"}],
}


def test_rows_have_errors_and_sources():
    found = table(RESULT)
    assert "| a library | M=8 K=4 | 10.00 | 12.50 | failed | +25.0% / - | [1] |" in found
    assert "| 9.00 | failed | -10.0% / - | [1] |" in found
    assert found.count("https://a.example/paper") == 1 and "1. A paper: <" in found
    assert "geometric mean: `one` 0.89." in found
