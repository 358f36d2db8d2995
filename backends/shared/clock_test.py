"""Times by two clocks: the times that a process reports, and the time that passes in another."""

from __future__ import annotations

import time

import pytest

from backends.backend import MachineFault
from backends.shared.clock import FEWEST, TwoClocks, at_once, readings


def asked(seconds, said):
    """A process that reports times of its calls, and the time that they take."""

    def call():
        time.sleep(seconds)
        return said

    return call


def test_a_process_that_says_less_than_passes_here_is_refused():
    both = TwoClocks(asked(2e-3, said=1e-3))
    readings(both.seconds, count=1, seconds=0)
    with pytest.raises(MachineFault, match=r"clocks disagree: 1000 us by .* at least 2\d+ us"):
        both.require_alike()


def test_a_process_that_says_what_passes_is_believed():
    both = TwoClocks(asked(1e-3, said=1e-3))
    both._here.append(1.2e-3)  # the least of all: a busy machine only makes others longer
    assert readings(both.seconds, count=2, seconds=0).readings == (500.0,) * FEWEST
    both.require_alike()


def test_short_calls_are_read_several_at_a_time():
    assert [at_once(asked(0, said=s)) for s in (1e-6, 9e-6, 1.0)] == [20, 2, 1]
