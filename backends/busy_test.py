"""A process is starved where it had little processor time and others wanted it."""

import os

import pytest

from backends.busy import starved


@pytest.mark.parametrize(
    ("load", "used", "passed", "expected"),
    [(9.0, 1.0, 60.0, True), (9.0, 40.0, 60.0, False), (0.5, 1.0, 60.0, False)],
)
def test_a_process_is_starved_by_others(monkeypatch, load, used, passed, expected):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert starved(used, passed) is expected
