"""The page on thread programs says how large their layer is."""

import ast
import re

from tests.source_tree import ROOT

LAYER = ROOT / "backends" / "gpu" / "threads"
PAGE = ROOT / "docs" / "thread_programs.md"
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


def test_the_page_says_how_many_lines_there_are():
    texts = [
        p.read_text(encoding="utf-8") for p in LAYER.glob("*.py") if not p.stem.endswith("_test")
    ]
    found = SAID.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    every, code = (int(n.replace(",", "")) for n in found.groups())
    counted = sum(len(t.splitlines()) for t in texts), sum(map(code_lines, texts))
    assert abs(every - counted[0]) <= NEAR and abs(code - counted[1]) <= NEAR, counted
