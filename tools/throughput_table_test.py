"""Tests the table of throughput: each search has a line, and each that found nothing is named."""

from tools.results_table import table

ROW = {
    "kernel": "softmax",
    "seconds": 10.0,
    "evaluations": 29,
    "per_second": 2.9,
    "correct": 20,
    "slow": 8,
    "failed": 1,
    "alone_share": 0.079,
    "seconds_each": {"correct": {"build": 0.5, "check": 1.259, "time": 0.25}},
}


def result(*rows):
    head = {"command": "c", "date": "d", "target": "h200", "workers": 16, "machine": "a GPU"}
    return head | {"driver": "1", "versions": {"torch": "2"}, "rows": list(rows)}


def test_a_search_is_a_line_and_nothing_is_rounded_up():
    text = table(result(ROW, {**ROW, "kernel": "lstm", "seconds": 5.0}))
    assert "`c`, d, a GPU, driver 1, torch 2; 16 workers." in text
    assert "| `softmax` | 10.0 | 29 | 2.90 | 20 | 8 | 1 | 7% | 0.50 | 1.25 | 0.25 | - |" in text
    assert "All: 58 evaluations in 15.0 s, 3.86 a second." in text


def test_the_share_in_which_the_device_was_busy_is_shown_where_it_is_known():
    text = table(result({**ROW, "device_busy": 0.579}, {**ROW, "kernel": "lstm"}))
    assert "| 20 | 8 | 1 | 7% | 57% | 0.50 |" in text and "| 7% | - | 0.50 |" in text
    assert "*Busy*" in text and "*Busy*" not in table(result(ROW))


def test_a_search_that_found_nothing_is_named():
    text = table(result({"kernel": "softmax", "reason": "exit code 2"}))
    assert "- `softmax`: exit code 2" in text and "All:" not in text
