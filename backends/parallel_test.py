"""Work on all cores gives what one process gives, in order, whatever becomes of the processes."""

import gc
import os
import signal
from itertools import islice

import pytest

from backends import parallel
from backends.parallel import on_all_cores


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 2)


def test_results_are_in_order_and_made_in_other_processes(two_cores):
    found = list(on_all_cores(lambda n: (n * n, os.getpid()), range(50)))
    assert [square for square, _ in found] == [n * n for n in range(50)]
    assert os.getpid() not in {process for _, process in found}


def test_large_results_come_whole(two_cores):
    sizes = [1 << 20, 3, 1 << 18, 0]
    assert list(on_all_cores(lambda n: b"x" * n, sizes)) == [b"x" * n for n in sizes]


@pytest.mark.parametrize(("cores", "items"), [(1, 5), (2, 1), (2, 0)])
def test_one_core_or_one_item_starts_no_process(cores, items, monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: cores)
    assert list(on_all_cores(lambda _: os.getpid(), range(items))) == [os.getpid()] * items


def test_an_error_is_raised_here_as_it_was(two_cores):
    def work(n):
        if n == 2:
            raise KeyError(os.getpid())
        return n

    found = on_all_cores(work, range(4))
    assert list(islice(found, 2)) == [0, 1]
    with pytest.raises(KeyError) as raised:
        next(found)
    assert raised.value.args == (os.getpid(),)


def test_what_a_dead_process_had_is_done_here(two_cores):
    here = os.getpid()

    def work(n):
        if n % 3 == 0 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    assert list(on_all_cores(work, range(9))) == list(range(9))


def test_what_cannot_be_pickled_is_made_here(two_cores):
    (one, other) = on_all_cores(lambda n: lambda: n, [4, 5])
    assert (one(), other()) == (4, 5)


def test_processes_end_where_results_are_not_awaited(two_cores):
    found = on_all_cores(lambda n: (n, os.getpid()), range(9))
    _, process = next(found)
    found.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize("usual", [700, 50_000])  # some libraries make them rarer themselves
def test_collections_are_rare_in_these_processes_alone(two_cores, usual):
    before = gc.get_threshold()
    gc.set_threshold(usual, *before[1:])
    try:
        found = set(on_all_cores(lambda _: gc.get_threshold()[0], range(4)))
        assert gc.get_threshold()[0] == usual
    finally:
        gc.set_threshold(*before)
    assert found == {max(usual, 10_000)}
