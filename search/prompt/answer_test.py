"""Answers are taken as they are meant, or refused with what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.prompt.answer import Refused, edited

FILES = {"a.sched": "schedule(k)\ntile(m, size=32)\ntile(n, size=8)\n", "b.kir": "def k():\n"}


def block(file, old, new):
    return f"<<<<<<< SEARCH {file}\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def test_a_block_replaces_lines_and_the_first_line_is_the_reason():
    text = "\nWider tiles move less.\n" + block("a.sched", "tile(m, size=32)", "tile(m, size=64)")
    found = edited(text, FILES)
    assert found.files == {"a.sched": FILES["a.sched"].replace("32", "64")}
    assert found.why == "Wider tiles move less."


def test_blocks_are_applied_in_order_and_may_drop_lines():
    text = block("a.sched", "tile(m, size=32)", "tile(m, size=4)")
    text += "<<<<<<< SEARCH a.sched\ntile(m, size=4)\ntile(n, size=8)\n=======\n>>>>>>> REPLACE\n"
    assert edited(text, FILES).files == {"a.sched": "schedule(k)\n"}


def test_a_whole_file():
    assert edited(">>>>>>> FILE b.kir\ndef j():\n<<<<<<< END\n", FILES).files == {
        "b.kir": "def j():\n"
    }


REFUSED = {
    "no edit": ("I cannot help with that.", "has no edit"),
    "unknown file": (block("c.kir", "x", "y"), "no file `c.kir`"),
    "not found": (block("a.sched", "tile(m, size=33)", ""), "0 times.*nearest line is"),
    "found twice": (
        ">>>>>>> FILE b.kir\nx\nx\n<<<<<<< END\n" + block("b.kir", "x", "y"),
        "2 times",
    ),
    "empty search": ("<<<<<<< SEARCH a.sched\n=======\nx\n>>>>>>> REPLACE\n", "needs lines"),
    "cut off": (block("a.sched", "tile(m, size=32)", "x").removesuffix(">>>>>>> REPLACE\n"), "cut"),
    "no middle": ("<<<<<<< SEARCH a.sched\nx\n>>>>>>> REPLACE\n", "where `=======`"),
    "stray marker": ("=======\n", "no marker here"),
    "nothing changes": (block("a.sched", "tile(m, size=32)", "tile(m, size=32)"), "change nothing"),
    "too long": ("x" * 500_000, "characters"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said(case):
    text, what = REFUSED[case]
    with pytest.raises(Refused, match=what):
        edited(text, FILES)


@given(st.text())
def test_any_text_is_refused_or_gives_edits_of_known_files(text):
    try:
        found = edited(text, FILES)
    except Refused:
        return
    assert set(found.files) <= set(FILES)


MARKER = "======="
LINES = st.lists(
    st.text("abc ()=", max_size=8).filter(lambda line: line.rstrip() != MARKER), max_size=6
)


@given(LINES, LINES)
def test_a_whole_file_is_taken_to_the_letter(before, after):
    text = "".join(line + "\n" for line in after)
    answer = ">>>>>>> FILE f\n" + text + "<<<<<<< END"
    given_files = {"f": "".join(line + "\n" for line in before)}
    try:
        assert edited(answer, given_files).files == {"f": text}
    except Refused:
        assert text == given_files["f"]


def test_a_long_reason_is_cut():
    found = edited("x" * 999 + "\n>>>>>>> FILE f\nnew\n<<<<<<< END", {"f": "old\n"})
    assert found.why == "x" * 200 + "..."


@pytest.mark.parametrize("character", ["\0", "\ud800", "\udfff"])
def test_what_no_file_can_hold_is_refused(character):
    with pytest.raises(Refused, match="character 16 "):
        edited(f">>>>>>> FILE f\n{character}\n<<<<<<< END", FILES)
