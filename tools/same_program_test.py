"""Tests that programs which differ only in names are the same, and that no others are."""

import pytest

from tools.same_program import same_program

SOURCE = '''"""Doc."""
def kernel(x, y, BLOCK: int):
    at = index(0) * BLOCK
    mask = at < 8
    y.store(at, x.load(at, mask=mask, other=0.0), mask=mask)

def launch(x, y):
    kernel[(1,)](x, y, BLOCK=4)
'''


@pytest.mark.parametrize(
    "renamed",
    [
        SOURCE,
        SOURCE.replace("at", "offset"),
        SOURCE.replace("BLOCK", "WIDTH"),
        SOURCE.replace("kernel", "scale"),
        SOURCE.replace("at = ", "at  =  "),
    ],
)
def test_names_and_spaces_make_no_other_program(renamed):
    assert same_program(SOURCE, renamed) and same_program(renamed, SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.load(at", "x.load(mask"),
        ("at < 8", "at <= 8"),
        ("other=0.0", "other=1.0"),
        ("other=", "others="),
        (".store", ".load"),
        ("BLOCK=4", "BLOCK=8"),
        ("mask = at < 8", "at = at < 8"),
        ('"""Doc."""', '"""Other."""'),
        ("(x, y, BLOCK=4)", "(y, x, BLOCK=4)"),
        ("    mask = at < 8\n", ""),
        ("def kernel", "def kernel("),
    ],
)
def test_any_other_difference_makes_another_program(old, new):
    assert old in SOURCE
    assert not same_program(SOURCE, SOURCE.replace(old, new, 1))


def test_what_is_no_python_is_the_same_as_itself_alone():
    assert same_program("int x;", "int x;")
    assert not same_program("int x;", "int y;")
