"""Tests rank correlation against values computed by hand."""

from math import log

import pytest

from benchmarks.rank import geometric_mean, ranks, regret, relative, spearman


def test_equal_values_share_the_mean_of_their_places():
    assert list(ranks([10, 30, 20])) == [1, 3, 2]
    assert list(ranks([5, 1, 5, 5])) == [3, 1, 3, 3]


def test_spearman_sees_order_alone():
    assert spearman([1, 2, 3], [10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(1 - 6 * 2 / (4 * 15))


def test_spearman_with_ties_is_pearson_of_the_mean_ranks():
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_spearman_of_nothing_to_order_is_none():
    assert spearman([1], [2]) is None
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    with pytest.raises(ValueError, match="2 values beside 1"):
        spearman([1, 2], [1])


def test_regret_is_what_the_pick_costs():
    assert regret([3, 1, 2], [30, 10, 20]) == 1
    assert regret([1, 3, 2], [30, 10, 20]) == 3


def test_means_are_of_ratios():
    assert geometric_mean([1, 4]) == pytest.approx(2)
    assert geometric_mean([]) is None
    assert relative([1, 4]) == pytest.approx([-log(2), log(2)])
