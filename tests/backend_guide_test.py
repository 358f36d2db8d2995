"""The guide for backends quotes a backend's files, and says what every statement means."""

from __future__ import annotations

import re
from pathlib import Path

from ir.nest.nest import Statement

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
