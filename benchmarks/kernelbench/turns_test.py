"""Turns keep apart who measures, and let the others work in parallel.

Visitors say what they do in the order in which they do it; nothing depends on how long it takes.
"""

import fcntl
import queue
import threading
from types import SimpleNamespace

import pytest

from benchmarks.kernelbench import turns as module
from benchmarks.kernelbench.turns import DeviceTurns

GUARD = 1800.0  # seconds: only what hangs waits so long


class Telling(DeviceTurns):
    """Turns that tell the visitor whose thread has to wait for a lock."""

    def _opened(self, name, how):
        if how & fcntl.LOCK_NB:
            return super()._opened(name, how)
        try:
            return super()._opened(name, how | fcntl.LOCK_NB)
        except BlockingIOError:
            tell = getattr(threading.current_thread(), "tell", None)
            if tell:
                tell("waits")
            return super()._opened(name, how)


class Visitor(threading.Thread):
    """Enters, and leaves when it may. news: of it and of all others, in order."""

    def __init__(self, work, news):
        super().__init__(daemon=True)
        self.work, self.news = work, news
        self.may_leave = threading.Event()

    def tell(self, what):
        self.news.put((self, what))

    def run(self):
        with self.work():
            self.tell("inside")
            self.may_leave.wait(GUARD)

    def leave(self):
        """Returns when it has left."""
        self.may_leave.set()
        self.join(GUARD)


@pytest.fixture
def turns(tmp_path):
    return Telling(tmp_path)


@pytest.fixture
def news():
    return queue.Queue()


@pytest.fixture
def enters(news):
    """Starts a visitor; it with the first news of it."""

    def start(work):
        visitor = Visitor(work, news)
        visitor.start()
        who, what = news.get(timeout=GUARD)
        assert who is visitor
        return visitor, what

    return start


def test_the_shared_are_side_by_side_and_one_alone_waits_for_them(turns, enters, news):
    with turns.shared():
        beside, first = enters(turns.shared)
        alone, second = enters(turns.alone)
        assert (first, second) == ("inside", "waits")
        beside.leave()
        assert news.empty()
    assert news.get(timeout=GUARD) == (alone, "inside")
    alone.leave()


def test_nobody_is_let_in_before_who_waits_to_be_alone(turns, enters, news):
    with turns.shared():
        alone, first = enters(turns.alone)
        late, second = enters(turns.shared)
        assert (first, second) == ("waits", "waits")
    assert news.get(timeout=GUARD) == (alone, "inside")
    assert news.empty()
    alone.leave()
    assert news.get(timeout=GUARD) == (late, "inside")
    late.leave()


def test_all_who_wait_to_be_alone_are_let_in_before_anyone_who_shares(turns, enters, news):
    with turns.shared():
        waiting = {enters(turns.alone) for _ in range(3)}
        late, what = enters(turns.shared)
        assert what == "waits"
    for _ in range(3):
        now, what = news.get(timeout=GUARD)
        assert what == "inside"
        waiting.remove((now, "waits"))
        assert news.empty()
        now.leave()
    assert news.get(timeout=GUARD) == (late, "inside")
    late.leave()


def test_who_shares_gives_way_to_who_waits_and_goes_on_after(turns, enters, news):
    with turns.shared() as give_way:
        give_way()  # to nobody
        alone, what = enters(turns.alone)
        assert what == "waits"
        alone.may_leave.set()
        give_way()  # comes back when the other has left
        assert news.get_nowait() == (alone, "inside")
        alone.join(GUARD)
        assert enters(turns.alone)[1] == "waits"


class Patient:
    """A visitor who is patient: it tells when it rests, and looks again when it is told to."""

    def __init__(self, folder, news, monkeypatch):
        self.now, self.look = 0.0, threading.Semaphore(0)
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self._rest)
        monkeypatch.setattr(module, "time", clock)
        self.news = news
        self.visitor = Visitor(Telling(folder, patience=60.0).alone, news)
        self.visitor.start()

    def _rest(self, _):
        threading.current_thread().tell("rests")
        self.look.acquire(timeout=GUARD)

    def heard(self):
        return self.news.get(timeout=GUARD)

    def leaves(self):
        """What it tells last is that it is inside."""
        assert self.heard() == (self.visitor, "inside")
        self.visitor.leave()


def test_who_is_patient_lets_others_come_until_nobody_shares(
    turns, enters, news, tmp_path, monkeypatch
):
    with turns.shared():
        patient = Patient(tmp_path, news, monkeypatch)
        assert patient.heard() == (patient.visitor, "rests")
        late, what = enters(turns.shared)
        assert what == "inside"
        late.leave()
    patient.look.release()
    patient.leaves()


def test_who_is_out_of_patience_lets_nobody_in_before(turns, enters, news, tmp_path, monkeypatch):
    with turns.shared():
        patient = Patient(tmp_path, news, monkeypatch)
        assert patient.heard() == (patient.visitor, "rests")
        patient.now = 60.0
        patient.look.release()
        assert patient.heard() == (patient.visitor, "waits")
        late, what = enters(turns.shared)
        assert what == "waits"
    patient.leaves()
    assert patient.heard() == (late, "inside")
    late.leave()


def test_who_is_patient_goes_with_another_who_is_not(turns, enters, news, tmp_path, monkeypatch):
    with turns.shared():
        patient = Patient(tmp_path, news, monkeypatch)
        assert patient.heard() == (patient.visitor, "rests")
        other, what = enters(turns.alone)
        assert what == "waits"
        patient.look.release()
        assert patient.heard() == (patient.visitor, "waits")
    for _ in range(2):
        who, what = patient.heard()
        assert what == "inside"
        who.leave()
    assert not other.is_alive()
