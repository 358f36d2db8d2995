"""Pages that say how large a layer is."""

import ast
import re

import pytest

from tests.source_tree import ROOT

CUTE = ("backends/cutedsl/*.py", "backends/cutedsl/kernel/*.py", "templates/cutedsl/*.j2")
LAYERS = {"thread_programs": ("backends/gpu/threads/*.py",), "cutedsl": CUTE}  # by page
SAID = re.compile(r"has about ([\d,]+) lines without tests, of which about ([\d,]+) are code")
NEAR = 150  # lines: the page need not follow each change


def code_lines(text):
    """Lines of a file that are no docstring, comment or import, and not empty."""
    left = set()
    for node in ast.walk(ast.parse(text)):
        inner = getattr(node, "body", None)
        first = inner[0] if isinstance(inner, list) and inner else None
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            left |= set(range(first.lineno, first.end_lineno + 1))
        if isinstance(node, ast.Import | ast.ImportFrom):
            left |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(x.strip()) and x.strip()[0] != "#" and n not in left for n, x in lines)


def lines_of_templates(text):
    """Lines of a template that are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


@pytest.mark.parametrize("page", LAYERS)
def test_the_page_says_how_many_lines_there_are(page):
    files = [f for place in LAYERS[page] for f in ROOT.glob(place) if not f.stem.endswith("_test")]
    texts = [(f.suffix, f.read_text(encoding="utf-8")) for f in files]
    found = SAID.search((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    assert found is not None
    every, code = (int(n.replace(",", "")) for n in found.groups())
    counted = (
        sum(len(t.splitlines()) for _, t in texts),
        sum(code_lines(t) if kind == ".py" else lines_of_templates(t) for kind, t in texts),
    )
    assert abs(every - counted[0]) <= NEAR and abs(code - counted[1]) <= NEAR, counted
