"""Quantities are short, have a suitable unit, and show when a value is unknown."""

import pytest

from search.core import quantity


@pytest.mark.parametrize(
    "us, said",
    [
        (None, "-"),
        (0.8504, "850 ns"),
        (1, "1.00 µs"),
        (12.345, "12.3 µs"),
        (999.4, "999 µs"),
        (1234.5, "1.23 ms"),
        (2.5e6, "2.50 s"),
        (4.1e9, "4,100 s"),
    ],
)
def test_a_time_has_three_digits_and_its_unit(us, said):
    assert quantity.time(us) == said


@pytest.mark.parametrize("us, said", [(0.5, "500 ns"), (50, "50 µs"), (2500, "2.5 ms")])
def test_a_mark_has_no_digits_to_spare(us, said):
    assert quantity.mark(us) == said


@pytest.mark.parametrize(
    "value, said",
    [(None, "-"), (0, "0%"), (0.00044, "0.044%"), (0.042, "4.2%"), (0.824, "82%"), (1.47, "147%")],
)
def test_a_small_share_is_not_rounded_away(value, said):
    assert quantity.share(value) == said


def test_a_factor_a_shape_and_a_duration():
    assert quantity.factor(3.4159) == "3.42×"
    assert quantity.factor(None) == "-"
    assert quantity.shape({"M": 7, "K": 13}) == "M=7, K=13"
    assert quantity.duration(42.4) == "42 s"
    assert quantity.duration(187) == "3 min 07 s"


def test_a_ratio_with_something_unknown_is_unknown():
    assert quantity.ratio(6.0, 2.0) == 3.0
    assert quantity.ratio(None, 2.0) is None
    assert quantity.ratio(6.0, None) is None
    assert quantity.ratio(6.0, 0.0) is None
