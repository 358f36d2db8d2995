"""Where a long text is broken."""

import pytest

from backends.triton.emit.lines import terms


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a + b[i + 1] & (c + d)", ["a", "+ b[i + 1]", "& (c + d)"]),
        ("-1+2", ["-1+2"]),
    ],
)
def test_terms_are_split_where_no_bracket_is_open(text, parts):
    assert list(terms(text)) == parts


def test_terms_of_a_reduction_are_split_within_it_and_within_its_groups():
    text = "a[m] = sum(f(x + 1) * y[k + 1] + (z + w), k=minimum((s + 1) * 2, K))"
    assert terms(text, within=1, groups=False) == (
        "a[m] = sum(f(x + 1) * y[k + 1]",
        "+ (z",
        "+ w), k=minimum((s + 1) * 2, K))",
    )
