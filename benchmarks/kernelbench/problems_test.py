"""Tests that problems are found by level and number, and that those that need no work are known."""

import pytest

from benchmarks.kernelbench.problems import DEGENERATE, ProblemFile, entries, numbers
from ir.errors import KernelError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "level1").mkdir()
    for name in ("10_Pool.py", "2_Sum.py", "23_Softmax.py", "notes.py", "3_Max.txt"):
        (tmp_path / "level1" / name).write_text("")
    return tmp_path


def test_problems_come_in_the_order_of_their_numbers(folder):
    assert [e.name for e in entries(folder, 1)] == ["2_Sum", "10_Pool", "23_Softmax"]


def test_some_may_be_chosen(folder):
    assert [e.number for e in entries(folder, 1, "1-9,23")] == [2, 23]


def test_numbers_and_ranges():
    assert numbers("") == set() and numbers("1,5-7") == {1, 5, 6, 7}


@pytest.mark.parametrize("text", ["x", "1-", "-3", "1.5"])
def test_other_words_are_refused(text):
    with pytest.raises(KernelError, match="no number of a problem"):
        numbers(text)


def test_a_folder_without_problems_is_refused(folder):
    with pytest.raises(KernelError, match="there are no problems"):
        entries(folder, 2)


def test_what_can_be_answered_without_work_is_marked(folder):
    assert [bool(e.degenerate) for e in entries(folder, 1)] == [False, False, True]
    assert not ProblemFile(2, 1, folder).degenerate and len(DEGENERATE) == 18
