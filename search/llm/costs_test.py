"""Prices are exactly those that the user gives."""

import pytest

from ir.errors import KernelError
from search.llm.costs import Price, prices


def test_a_price_is_per_million_tokens():
    assert Price(0.5, 1.5).of(2_000_000, 1_000_000) == 2.5
    assert Price(0.0, 0.0).of(5, 5) == 0.0


def test_prices_are_read_from_words(tmp_path):
    found = prices(["m=0.5/1.5", "org/n:7b=2/10", "m=1/2", "a=b=3/4"])
    assert found == {"m": Price(1.0, 2.0), "org/n:7b": Price(2.0, 10.0), "a=b": Price(3.0, 4.0)}


def test_prices_are_read_from_a_file(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text('[m]\nin = 0.5\nout = 1\n["org/n:7b"]\nin = 2\nout = 10\n')
    assert prices([str(path), "m=7/7"]) == {"m": Price(7, 7), "org/n:7b": Price(2, 10)}


@pytest.mark.parametrize(
    "word",
    ["m=", "m=1", "m=1/", "m=/1", "=1/2", "m=-1/2", "m=nan/2", "m=1/inf", "m=1/2/3", "m=a/b"],
)
def test_what_is_no_price_is_refused(word):
    with pytest.raises(KernelError, match="is no price") as caught:
        prices([word])
    assert caught.value.where == "--price" and "MODEL=IN/OUT" in caught.value.allowed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[m", "cannot be read"),
        ("m = 1", "does not hold `in` and `out`"),
        ("[m]\nin = 1", "does not hold `in` and `out`"),
        ("[m]\nin = 1\nout = 2\nper = 3", "does not hold `in` and `out`"),
        ("[m]\nin = -1\nout = 2", "`-1` in `\\[m\\] of .*` is no price"),
        ("[m]\nin = true\nout = 2", "`True` in `\\[m\\] of .*` is no price"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(text, said, tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(KernelError, match=said):
        prices([str(path)])


def test_a_file_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(KernelError, match="cannot be read"):
        prices([str(tmp_path / "nothing.toml")])
