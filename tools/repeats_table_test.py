"""Tests the table of repeats: each row has all its speed-ups, and failures are listed."""

from benchmarks.repeats import summary
from tools.results_table import table

KEY = {"dtype": "f16", "shape": {"M": 4, "K": 8}}


def test_a_row_has_all_its_speed_ups_and_its_spread():
    rows = [
        {"kernel": "softmax", **KEY, "speedups": [2.0, 2.0299], "spread": 0.01495},
        {"kernel": "cumsum", **KEY, "spread": None, "reason": "wrong"},
    ]
    head = {"repeats": 2, "command": "c", "date": "d", "machine": "a chip", "driver": "1"}
    text = table(
        head | {"versions": {"torch": "2"}, "within": 0.02, "summary": summary(rows), "rows": rows}
    )
    assert "`c`, 2 times, d, a chip, driver 1, torch 2. 1 of 2 rows are within 2%" in text
    assert "| softmax | f16 | M=4 K=8 | 2.000 | 2.029 | 1.50% |" in text
    assert "| cumsum | f16 | M=4 K=8 | - | - | wrong |" in text
