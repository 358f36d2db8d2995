"""The text of errors."""

from ir.errors import KernelError, SourceRange

PLACE = SourceRange(3, 4, 7, "y = foo + 1")


def test_the_caret_stands_under_the_piece_at_fault():
    assert str(PLACE).splitlines() == ["    y = foo + 1", "        ^^^"]


def test_the_caret_ends_with_its_line_and_is_never_empty():
    assert str(SourceRange(1, 4, 90, "y = foo")).endswith("\n        ^^^")
    assert str(SourceRange(1, 2, 2, "y = foo")).endswith("\n      ^")


def test_an_error_says_where_what_allowed_and_hint_in_this_order():
    found = KernelError("is wrong", place=PLACE, where="a.kir", allowed="x, y", hint="do z")
    assert str(found).splitlines() == [
        "a.kir, line 3: is wrong",
        "    y = foo + 1",
        "        ^^^",
        "  allowed: x, y",
        "  hint: do z",
    ]


def test_an_error_without_a_place_is_one_line():
    assert str(KernelError("is wrong")) == "is wrong"
    assert str(KernelError("is wrong", where="a.kir")) == "a.kir: is wrong"


def test_a_fault_within_a_file_keeps_all_else():
    found = KernelError("w", place=PLACE, allowed="a", hint="h").within("b.kir")
    assert (found.what, found.place, found.where, found.allowed, found.hint) == (
        "w",
        PLACE,
        "b.kir",
        "a",
        "h",
    )
