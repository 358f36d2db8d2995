"""Tests KernelBench's check: what it accepts and rejects."""

import re

import pytest
import torch

from benchmarks import against_float64
from benchmarks.kernelbench import suite

X = torch.linspace(-3, 3, 1000)


def test_seeds_are_as_many_as_the_suites_and_always_the_same():
    assert suite.trial_seeds() == suite.trial_seeds() and len(set(suite.trial_seeds())) == 5


def test_what_is_near_passes():
    assert not suite.fault([X + 5e-5], [X]) and not suite.fault((X, 3), (X, 3))


@pytest.mark.parametrize(
    ("got", "words"),
    [
        ([X + 1e-3], "1000 of 1000"),
        ([X[:10]], r"\[10\], not \[1000\]"),
        ((X,), "the results are"),
        ([torch.where(X > 2.9, float("nan"), X)], "by up to inf"),
    ],
)
def test_others_do_not(got, words):
    assert re.search(words, suite.fault(got, [X]))


def test_pieces_hold_everything(monkeypatch):
    monkeypatch.setattr(against_float64, "PIECE", 300)
    wrong = X.clone()
    wrong[950] += 1
    assert suite.fault([wrong], [X]).startswith("1 of 1000")
    assert [len(a) for a, _ in against_float64.pieces(X, X)] == [300, 300, 300, 100]
