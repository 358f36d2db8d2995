"""Tests a limit that counts the seconds in which a process ran."""

import signal

import pytest

from benchmarks.device_lock import running_limit
from benchmarks.race import OutOfTime


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """A clock that the tests set."""
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)


def second():
    signal.raise_signal(signal.SIGALRM)


def test_seconds_of_running_are_counted_up_to_the_limit():
    with running_limit(2.0) as ran:
        second()
        second()
        assert ran.seconds == 2
        with pytest.raises(OutOfTime, match="longer than 2 s"):
            second()


def test_a_limit_ends_with_its_work():
    before = signal.getsignal(signal.SIGALRM)
    with running_limit(1.0):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before
