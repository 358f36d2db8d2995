"""Tests that the table of the cost of checking matches its rows."""

from __future__ import annotations

from tools.results_table import table


def row(kernel, backend, source, check, accepted=True, **more):
    seconds = {"check": check, **{name.replace("_", " "): s for name, s in more.items()}}
    found = {"kernel": kernel, "backend": backend, "source": source, "seconds": seconds}
    return found | {"numbers": 4096, "accepted": accepted}


RESULT = {
    "gate": True,
    "command": "python3 -m benchmarks.gate --target=chip --out=gate.json",
    "date": "2026-11-27",
    "machine": "A chip",
    "python": "3",
    "secret": "abc",
    "rounds": 4,
    "at_once": 2,
    "summary": {
        "accepted": 2,
        "rows": 3,
        "emitted": {"median_s": 0.5, "most_s": 1.25},
        "edited": None,
    },
    "rows": [
        row("a", "one", "emitted", 1.25),
        row("a", "one", "edited", 0.1, accepted=False),
        row("b", "one", "emitted", 0.5),
        row("c", "one", "emitted", 4.5, build_to_check=2.0, waiting_to_check=4.0),
        row("d", "one", "emitted", 0.5, build_to_check=0.001, waiting_to_check=0.0),
    ],
}


def test_a_row_has_the_seconds_of_each_way():
    made = table(RESULT)
    assert "| kernel | numbers | one, emitted | one, edited |" in made
    assert "| a | 4,096 | 1.25 | refused |" in made
    assert "| b | 4,096 | 0.50 | - |" in made
    assert "| c | 4,096 | 0.50 (2.00 built, 4.00 waited) | - |" in made
    assert "| d | 4,096 | 0.50 | - |" in made
    assert "2 of 3 accepted. emitted: median 0.50 s, most 1.25 s." in made
    assert "A chip, python 3, secret `abc`" in made and "the median of 3; 2 at a time" in made
