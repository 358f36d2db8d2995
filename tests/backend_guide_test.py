"""The guide for backends quotes a backend's files, and says what every statement means."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from backends.registry import target
from backends.shared.admission import Rules
from backends.shared.loops import Loops
from backends.shared.names import Names
from backends.shared.view import kernel_view
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from ir.nest.nest import Statement
from testing.samples.samples import workload

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "add_a_backend.md").read_text(encoding="utf-8")


def quotes(page: str) -> list[tuple[str, str]]:
    """The blocks of code that a page says are of a file: (file, text)."""
    return re.findall(r"<!-- of (\S+) -->\n```\w*\n(.*?)```", page, re.DOTALL)


def test_the_document_quotes_what_is_there():
    found = quotes(GUIDE)
    assert len(found) >= 5
    others = (p.read_text(encoding="utf-8") for p in (ROOT / "docs").glob("*.md"))
    for file, text in (quote for page in others for quote in quotes(page)):
        assert text in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no longer:\n{text}"


def test_the_document_says_what_every_statement_means():
    names = {s.__name__ for s in Statement.__subclasses__()}
    rows = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))
    assert len(names) > 8 and names <= rows, names - rows


def table(title: str) -> list[str]:
    """The words in backticks of the first column of the table under a title."""
    _, _, rest = GUIDE.partition(f"| {title} |")
    rows = rest.partition("\n\n")[0].splitlines()[2:]
    return [word for row in rows for word in re.findall(r"`(\w+)`", row.split("|")[1])]


@pytest.mark.parametrize("kind", [Names, Rules])
def test_a_table_has_every_field(kind):
    assert table(f"field of `{kind.__name__}`") == [f.name for f in fields(kind)]


def test_a_table_has_every_field_of_the_view():
    class Language(Loops):
        def nodes(self, s, once):
            return iter(())

    names = Names(frozenset(), re.compile("!"), re.compile("!"), ("t",))
    work, machine = workload("softmax"), target("cpu")
    nest = lower(work.spec, plain(work.spec, machine, work.tune), machine, work.tune)
    launch, *_ = kernel_view(nest, names, Language)["launches"]
    assert sorted(table("field of the view")) == sorted(launch)


def test_a_table_has_every_function_of_the_prelude():
    text = (ROOT / "backends" / "shared" / "prelude" / "functions.h").read_text(encoding="utf-8")
    own = text.partition("namespace fn {")[2].partition("}  // namespace fn")[0]
    there = set(re.findall(r"^inline \w+ (\w+)\(", own, re.MULTILINE))
    assert len(there) > 40 and set(table("function of the prelude")) == there
