"""A document is read strictly, and its text is read back as an equal value."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.errors import KernelError
from search.prompt.document import KINDS, Document, document
from search.prompt.operations import OPERATIONS

TEXT = """<!-- document
kind = "idioms"
machines = ["gfx942"]
operations = ["product", "chain"]
tags = ["registers"]
sources = ["ir/lower/verbs.py"]
-->

# Two products

The second reads the first. It
goes on.

More.
"""
SKILL = Document(
    name="s",
    kind="skill",
    title="T",
    body="What paid.\n",
    sources=("run 1",),
    provenance={
        "run": "1",
        "kernel": "f",
        "target": "t",
        "backend": "b",
        "date": "2026-01-31",
        "evaluations": 3,
        "time_kind": "modelled",
    },
    verbs={"tile": {"tries": 2, "faster": 0.5, "failed": 1, "speedup": 1.25}},
)


def fault(text):
    with pytest.raises(KernelError) as caught:
        document("d", text, "d.md")
    assert str(caught.value).startswith("d.md: ")
    return str(caught.value)


def test_a_document_says_what_its_header_and_its_title_say():
    found = document("two", TEXT)
    assert (found.name, found.kind, found.title) == ("two", "idioms", "Two products")
    assert found.operations == ("product", "chain")
    assert (found.machines, found.tags) == (("gfx942",), ("registers",))
    assert found.sources == ("ir/lower/verbs.py",)


def test_its_summary_is_the_first_sentence():
    assert document("two", TEXT).summary == "The second reads the first."
    assert document("two", TEXT).entry == (
        "two (idioms; product, chain, registers): Two products. The second reads the first."
    )


def test_the_text_of_a_prompt_has_no_header():
    assert document("two", TEXT).text == TEXT.partition("-->\n\n")[2]


def test_what_prints_is_read_as_the_same():
    for found in (document("two", TEXT), SKILL):
        assert document(found.name, found.file_text) == found


words = st.lists(st.from_regex(r"[a-z0-9][a-z0-9_ -]{0,8}", fullmatch=True), max_size=3).map(tuple)
line = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=30)


@given(
    st.sampled_from(KINDS[:-1]),
    line,
    line,
    words,
    words,
    st.lists(st.sampled_from(OPERATIONS), unique=True).map(tuple),
    st.lists(line, min_size=1, max_size=3).map(tuple),
)
def test_any_document_is_read_as_it_was_printed(
    kind, title, body, tags, machines, operations, sources
):
    found = Document("d", kind, title, body + "\n", sources, tags, machines, operations)
    assert document("d", found.file_text) == found


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("<!-- document", "<!-- note", "does not begin with a header"),
        ("-->", "--", "does not begin with a header"),
        ('kind = "idioms"\n', "", "field `kind` is missing"),
        ('kind = "idioms"', "kind = 3", "field `kind` is no text"),
        ('kind = "idioms"', 'kind = "idiom"', "field `kind` is 'idiom'"),
        ('kind = "idioms"', "kind = idioms", "is not TOML"),
        ("tags", "tag", "field `tag` is not known"),
        ('["registers"]', '"registers"', "field `tags` is 'registers'"),
        ('["registers"]', '["Registers"]', "field `tags` has 'Registers'"),
        ('"chain"', '"chains"', "field `operations` has 'chains'"),
        ('["ir/lower/verbs.py"]', "[]", "field `sources` is empty"),
        ("# Two", "## Two", "the header is followed by"),
        ("-->\n\n#", "-->\n#", "the header is followed by"),
        ("products\n\nThe", "products\nThe", "the header is followed by"),
        ('kind = "idioms"', 'kind = "skill"', "goes with kind `skill`"),
    ],
)
def test_each_fault_is_named(old, new, what):
    assert old in TEXT
    assert what in fault(TEXT.replace(old, new, 1))


def test_a_title_alone_is_no_document():
    assert "no text below its title" in fault(TEXT[: TEXT.index("The second")])


def test_what_is_nearly_right_is_suggested():
    assert "chain" in fault(TEXT.replace('"chain"', '"chian"')).partition("hint: ")[2]


def test_a_skill_says_how_it_was_had():
    with pytest.raises(KernelError, match="lacks `date`"):
        replace(SKILL, provenance={k: v for k, v in SKILL.provenance.items() if k != "date"})


@pytest.mark.parametrize(
    "counts", [{"tries": 1}, 3, {"tries": 1, "faster": 0, "failed": 0, "speedup": "fast"}]
)
def test_what_a_skill_counts_are_numbers(counts):
    with pytest.raises(KernelError, match="field `verbs` has"):
        replace(SKILL, verbs={"tile": counts})
