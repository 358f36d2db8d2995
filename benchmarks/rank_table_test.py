"""Tests the summary of a ranking against values computed by hand."""

import pytest

from benchmarks.rank_table import read, summary, write


def row(kernel, number, modelled, measured, **more):
    return {
        "kernel": kernel,
        "backend": "one",
        "schedule": f"s{number}",
        "correct": True,
        "reason": "",
        "modelled_us": modelled,
        "guessed_us": modelled,
        "estimated_us": modelled,
        "measured_us": measured,
        **more,
    }


ROWS = [
    row("a", 0, 1.0, 10.0),
    row("a", 1, 2.0, 30.0),
    row("a", 2, 3.0, 20.0),
    row("b", 0, 1000.0, 4.0),
    row("b", 1, 3000.0, 1.0),
    row("b", 2, None, None, correct=False, reason="build: no"),
    row("c", 0, 5.0, None, correct=None),
]


def test_each_kernel_is_ranked_by_itself():
    kernels = summary(ROWS)["kernels"]
    assert kernels["a"]["modelled"] == {"rho": pytest.approx(0.5), "regret": 1.0}
    assert kernels["a"]["random"] == pytest.approx((1 * 3 * 2) ** (1 / 3))
    assert kernels["a"]["best_schedule"] == "s0"
    assert kernels["b"]["modelled"] == {"rho": pytest.approx(-1), "regret": 4.0}
    assert kernels["b"]["failed"] == [{"schedule": "s2", "reason": "build: no"}]
    assert kernels["c"] == {"timed": 0, "failed": []}


def test_all_kernels_are_ranked_relative_to_their_own_times():
    overall = summary(ROWS)["overall"]
    assert (overall["timed"], overall["failed"]) == (5, 1)
    assert overall["modelled"]["rho_mean"] == pytest.approx((0.5 - 1) / 2)
    assert overall["modelled"]["regret"] == pytest.approx(2.0)
    # The wrong order of b's estimates counts; their scale, a thousand times that of a's, does not.
    assert -1 < overall["modelled"]["rho_pooled"] < 1


def test_backends_are_ranked_together_and_each_by_itself():
    others = [
        row("a", 0, 4.0, 15.0, backend="two"),
        row("a", 1, 0.5, 5.0, backend="two"),
    ]
    found = summary([*ROWS, *others])
    assert found["backends"]["one"] == summary(ROWS)
    assert found["backends"]["two"]["kernels"]["a"]["modelled"]["rho"] == pytest.approx(1.0)
    assert found["kernels"]["a"]["timed"] == 5 and found["kernels"]["a"]["best_us"] == 5.0
    assert "backends" not in summary(ROWS)


def test_a_file_is_read_as_it_was_written(tmp_path):
    assert read(tmp_path / "none.json") == []
    write(tmp_path / "new" / "r.json", {"machine": None}, ROWS)
    assert read(tmp_path / "new" / "r.json") == ROWS
