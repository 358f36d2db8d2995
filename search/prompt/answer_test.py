"""Answers are read as intended, or refused with the fault."""

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


LINES = st.lists(st.text("abc ()=\f\x85\u2028", max_size=8), max_size=6)


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


DOCUMENTED = '''"""A kernel.

```
kernel(x)
```
"""
def kernel(): ...
'''
WRAPPED = {
    "plain": "```\n{}```\n",
    "named": "```python\n{}```\n",
    "with more words": "```python title=kernel.py\n{}```\n",
    "as prompts show files": "````python\n{}````\n",
    "of tildes": "~~~\n{}~~~\n",
    "with blank lines": "\n\n```python\n{}```\n\n",
    "twice": "````\n```python\n{}```\n````\n",
    "with blanks behind": "```python  \n{}```  \n",
    "of Windows": "```python\r\n{}```\r\n",
    "longer at the end": "```python\n{}`````\n",
}


@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize(
    "body", ["def kernel(): ...\n", DOCUMENTED, DOCUMENTED.replace("```", "~~~")]
)
@pytest.mark.parametrize("file", ["schedule.sched", "variant.kir", "kernel.py"])
def test_a_fence_round_a_whole_file_is_no_part_of_it(file, body, wrapped):
    answer = f"Why.\n>>>>>>> FILE {file}\n{wrapped.format(body)}<<<<<<< END\n"
    found = edited(answer, {file: "before\n"})
    assert found.files == {file: body} and found.why == "Why."


@pytest.mark.parametrize(
    "old, new",
    [
        ("```\ntile(m, size=32)\n```", "```\ntile(m, size=64)\n```"),
        ("```python\ntile(m, size=32)\n```", "tile(m, size=64)"),
        ("```python\ntile(m, size=32)", "tile(m, size=64)\n```"),
        ("\n```python\ntile(m, size=32)", "\ntile(m, size=64)\n```\n"),
    ],
)
def test_fences_round_the_lines_of_a_block_are_no_part_of_them(old, new):
    changed = edited(block("a.sched", old, new), FILES).files["a.sched"]
    kept = [line for line in changed.splitlines() if line]
    assert kept == FILES["a.sched"].replace("32", "64").splitlines()


@pytest.mark.parametrize("fence", ["```", "```text", "~~~"])
def test_fences_round_blocks_are_no_reason(fence):
    text = f"{fence}\n{block('a.sched', 'tile(m, size=32)', 'tile(m, size=64)')}{fence[:3]}\nWhy.\n"
    assert edited(text, FILES).why == "Why."


def test_fences_that_stand_in_a_file_are_edited_as_they_stand():
    files = {"kernel.py": DOCUMENTED}
    answer = block("kernel.py", "```\nkernel(x)\n```", "```\nkernel(y)\n```")
    assert edited(answer, files).files == {"kernel.py": DOCUMENTED.replace("(x)", "(y)")}


@pytest.mark.parametrize("body", ["```python\ncode\n", "```python\ncode\n```\nIt is faster.\n"])
def test_a_fence_that_is_not_round_all_of_a_file_is_refused(body):
    with pytest.raises(Refused, match="line 1: `b.kir` begins with a code fence"):
        edited(f">>>>>>> FILE b.kir\n{body}<<<<<<< END\n", FILES)


@pytest.mark.parametrize(
    "body, taken",
    [
        ("```\nIn a word.\n```\n", "In a word.\n"),
        ("```markdown\nSo:\n```\na\n```\n```\n", "So:\n```\na\n```\n"),
        ("```\na\n```\nor\n```\nb\n```\n", None),
        ("```\na\n```\nis better.\n", None),
    ],
)
def test_markdown_may_begin_with_code_of_its_own(body, taken):
    answer = f">>>>>>> FILE pitfalls.md\n{body}<<<<<<< END\n"
    assert edited(answer, {"pitfalls.md": "before\n"}).files == {"pitfalls.md": taken or body}


def test_a_file_with_fences_in_it_by_mistake_is_put_right():
    files = {"kernel.py": "```python\nold\n```\n"}
    answer = ">>>>>>> FILE kernel.py\n```python\nnew\n```\n<<<<<<< END\n"
    assert edited(answer, files).files == {"kernel.py": "new\n"}


def test_a_whole_file_may_have_a_line_that_looks_like_a_middle():
    text = '"""Title\n=======\n"""\n'
    assert edited(f">>>>>>> FILE b.kir\n{text}<<<<<<< END\n", FILES).files == {"b.kir": text}


UNNAMED = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
TWO = {"a.py": "def f():\n    x = 1\n    return x\n", "b.py": "x = 1\ny = 2\n"}


@pytest.mark.parametrize(
    "before",
    ["b.py\n", "`b.py`\n```python\n", "**b.py**:\n\n", "### b.py\n", "Less work.\n\nb.py\n"],
)
def test_a_block_is_of_the_file_that_the_line_before_it_names(before):
    found = edited(before + UNNAMED.format("x = 1", "x = 3"), TWO)
    assert found.files == {"b.py": "x = 3\ny = 2\n"}
    assert found.why == ("Less work." if "Less" in before else "")


def test_a_block_without_a_name_is_of_the_only_file_that_has_its_lines():
    found = edited("Twice as much.\n" + UNNAMED.format("y = 2", "y = 4"), TWO)
    assert found.files == {"b.py": "x = 1\ny = 4\n"} and found.why == "Twice as much."


@pytest.mark.parametrize(
    ("old", "words"),
    [("z = 1", "its lines stand nowhere"), ("x = 1", "its lines stand in a.py, b.py")],
)
def test_a_block_of_no_certain_file_is_refused(old, words):
    files = {"a.py": "x = 1\n", "b.py": "x = 1\n"}
    with pytest.raises(Refused, match=f"line 1: the block has no name of a file, and {words}"):
        edited(UNNAMED.format(old, "x = 2"), files)


def test_lines_may_be_indented_otherwise_all_by_as_much():
    want = {"a.py": "def f():\n    x = 2\n    if x:\n        x = 3\n    return x\n"}
    for by in ("", "  ", "      "):
        old = f"{by}x = 1\n{by}return x"
        new = f"{by}x = 2\n{by}if x:\n{by}    x = 3\n{by}return x"
        assert edited(block("a.py", old, new), TWO).files == want
    with pytest.raises(Refused, match="stand 0 times"):
        edited(block("a.py", "x = 1\n  return x", "x = 2"), TWO)
    with pytest.raises(Refused, match="stand 0 times"):  # the new text cannot be moved to the left
        edited(block("a.py", "        x = 1", "x = 2"), TWO)
    twice = {"a.py": "if a:\n    x = 1\nif b:\n    x = 1\n"}
    with pytest.raises(Refused, match="stand 0 times"):
        edited(block("a.py", "x = 1", "x = 2"), twice)
