"""Lines as text, and how the template breaks those that are long."""

import textwrap

import pytest

from backends.emit import Templates
from backends.triton.emit.lines import Block, Call, Line, terms


def printed(*lines):
    macros = Templates("triton").environment.get_template("macros.py.j2").module
    return str(macros.block(lines, 1))


def test_a_call_has_a_name_where_it_has_a_result():
    assert Call("x", "tl.load", ("p", "mask=m")).text == "x = tl.load(p, mask=m)"
    assert Call("", "tl.store", ("p", "x")).text == "tl.store(p, x)"


def test_blocks_are_indented_below_their_header():
    text = printed(
        Line("a = 1"), Block("if a:", (Block("for i in b:", (Line("c = i"),)),)), Line("d = 2")
    )
    assert text == "    a = 1\n    if a:\n        for i in b:\n            c = i\n    d = 2"


def test_a_long_call_is_broken_into_its_arguments():
    call = Call("x", "tl.load", ("p" * 60, "mask=" + "m" * 40))
    lines = printed(call).splitlines()
    assert [line.strip() for line in lines] == [
        "x = tl.load(",
        f"{'p' * 60},",
        f"mask={'m' * 40},",
        ")",
    ]
    compile(textwrap.dedent("\n".join(lines)), "text", "exec")


def test_a_long_argument_is_broken_into_its_terms():
    mask = "mask=" + " & ".join(f"({c * 12} + 1 < {c * 12})" for c in "abcd")
    lines = printed(Call("x", "tl.load", ("p + q", mask))).splitlines()
    assert lines[1:4] == [
        "        p + q,",
        f"        mask=({'a' * 12} + 1 < {'a' * 12})",
        f"            & ({'b' * 12} + 1 < {'b' * 12})",
    ]
    compile(textwrap.dedent("\n".join(lines)), "text", "exec")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a + b[i + 1] & (c + d)", ["a", "+ b[i + 1]", "& (c + d)"]),
        ("-1+2", ["-1+2"]),
    ],
)
def test_terms_are_parted_where_no_bracket_is_open(text, parts):
    assert list(terms(text)) == parts


def test_terms_of_a_fold_are_parted_within_it_and_within_its_groups():
    text = "a[m] = sum(f(x + 1) * y[k + 1] + (z + w), k=minimum((s + 1) * 2, K))"
    assert terms(text, within=1, groups=False) == (
        "a[m] = sum(f(x + 1) * y[k + 1]",
        "+ (z",
        "+ w), k=minimum((s + 1) * 2, K))",
    )


def test_a_short_call_stays_on_its_line():
    assert printed(Call("", "tl.store", ("p", "x"))) == "    tl.store(p, x)"
