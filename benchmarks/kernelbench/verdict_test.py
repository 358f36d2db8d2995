"""Tests that a verdict accepts the error of PyTorch's own arithmetic, and nothing less accurate."""

import pytest
import torch

from benchmarks.kernelbench.verdict import ThreeResults, verdict

X = torch.randn(64, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def trial(got, truth=X):
    return ThreeResults([got], [truth.float()], [truth])


def test_results_as_near_as_pytorchs_are_right():
    assert verdict([trial(X.float()), trial(X.float() * (1 + 1e-7))]).correct


def wrong_once():
    made = X.float()
    made[3, 4] += 1e-3
    return made


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        (X.float() * (1 + 8e-6), "root mean square"),
        (wrong_once(), "root mean square"),
        (X.float()[:3], "the shape is"),
        (X.half(), "float16"),
        (torch.full((64, 32), float("nan")), "not finite"),
    ],
)
def test_others_are_wrong(got, reason):
    assert reason in verdict([trial(X.float()), trial(got)]).reason


def test_the_same_infinities_are_equal():
    truth = X.clone()
    truth[0] = float("-inf")
    truth[1, 0] = float("nan")
    assert verdict([trial(truth.float(), truth)]).correct
    wrong = truth.float()
    wrong[0, 0] = float("inf")
    assert not verdict([trial(wrong, truth)]).correct


def test_integers_and_plain_values_are_equal():
    whole = torch.arange(5)
    assert verdict([ThreeResults((whole, 3), (whole, 3), (whole, 3))]).correct
    assert "1 integers" in verdict([ThreeResults(whole.clamp(max=3), whole, whole)]).reason
    assert not verdict([ThreeResults((whole, 4), (whole, 3), (whole, 3))]).correct


def test_structures_are_equal():
    assert "the results are" in verdict([ThreeResults([X.float()], (X.float(),), (X,))]).reason
    assert not verdict([ThreeResults([], [], [])]).correct
