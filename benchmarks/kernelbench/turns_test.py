"""Turns keep apart who measures, and let the others work side by side."""

import threading

from benchmarks.kernelbench.turns import Turns


def entered(work, seconds=0.3):
    """A thread that enters, and whether it could in some time; it leaves when told to."""
    inside, leave = threading.Event(), threading.Event()

    def run():
        with work():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return inside.wait(seconds), inside, leave, thread


def test_the_shared_are_side_by_side_and_one_alone_waits_for_them(tmp_path):
    turns = Turns(tmp_path)
    with turns.shared():
        there, _, leave, thread = entered(turns.shared, 20)
        assert there
        waits, alone, done, second = entered(turns.alone)
        assert not waits
        leave.set()
        thread.join(20)
    assert alone.wait(20)
    done.set()
    second.join(20)


def test_nobody_is_let_in_before_who_waits_to_be_alone(tmp_path):
    turns = Turns(tmp_path)
    with turns.shared():
        _, alone, done, first = entered(turns.alone)
        early, late, leave, second = entered(turns.shared)
        assert not early
    assert alone.wait(20) and not late.is_set()
    done.set()
    assert late.wait(20)
    leave.set()
    for thread in (first, second):
        thread.join(20)


def test_all_who_wait_to_be_alone_are_let_in_before_anyone_who_shares(tmp_path):
    turns = Turns(tmp_path)
    with turns.shared():
        waiting = [entered(turns.alone, 0.1) for _ in range(3)]
        early, late, leave, last = entered(turns.shared, 0.1)
        assert not early
    for _ in waiting:
        inside = [w for w in waiting if w[1].wait(0.5)]
        (now,) = [w for w in inside if w[3].is_alive()]
        assert not late.is_set()
        now[2].set()
        now[3].join(20)
    assert late.wait(20)
    leave.set()
    last.join(20)


def test_who_shares_gives_way_to_who_waits_and_goes_on_after(tmp_path):
    turns = Turns(tmp_path)
    with turns.shared() as give_way:
        give_way()  # to nobody
        early, alone, done, thread = entered(turns.alone, 0.1)
        assert not early
        threading.Timer(0.3, done.set).start()
        give_way()  # comes back when the other has left
        assert alone.is_set() and done.is_set()
        thread.join(20)
        assert not entered(turns.alone, 0.1)[0]
