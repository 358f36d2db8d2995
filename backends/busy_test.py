"""A process is starved where it had little processor time and others wanted it."""

import os

import pytest

from backends.busy import in_line, starved


@pytest.mark.parametrize(
    ("load", "used", "passed", "waited", "expected"),
    [
        (9.0, 1.0, 60.0, None, True),
        (9.0, 40.0, 60.0, None, False),
        (0.5, 1.0, 60.0, None, False),
        (9.0, 1.0, 60.0, 50.0, True),
        (9.0, 1.0, 60.0, 2.0, False),  # it slept
        (
            9.0,
            5.0,
            60.0,
            2.0,
            True,
        ),  # of what used the five seconds, nobody knows how long it waited
    ],
)
def test_a_process_is_starved_by_others(monkeypatch, load, used, passed, waited, expected):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert starved(used, passed, waited) is expected


def process(proc, number, tasks, children=""):
    """Writes what the system says of one. tasks: nanoseconds in line of each."""
    for task, waited in tasks.items():
        folder = proc / str(number) / "task" / str(task)
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"77 {waited} 5\n")
        (folder / "children").write_text(children if task == number else "")
    (proc / str(number) / "schedstat").write_text("77 1 5\n")


def test_all_threads_and_all_that_descends_stand_in_line(tmp_path):
    process(tmp_path, 10, {10: 1_000_000_000, 11: 500_000_000}, "20 30 ")
    process(tmp_path, 20, {20: 2_000_000_000}, "40 ")
    process(tmp_path, 40, {40: 250_000_000})
    process(tmp_path, 50, {50: 9_000_000_000})  # of somebody else; 30 has ended
    assert in_line(10, tmp_path) == 3.75
    assert in_line(30, tmp_path) is None


def test_of_this_process_the_system_says_it_or_nothing():
    found = in_line(os.getpid())
    assert found is None or found >= 0.0
