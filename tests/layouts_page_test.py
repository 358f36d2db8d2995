"""The page on layouts: its examples give what it says, and its table has every operation."""

import doctest
import inspect
import json
import re

from backends.gpu.layout import algebra
from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "layouts.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_give_what_the_page_says():
    """All examples share their names, as a reader's session does."""
    said = []
    examples = "\n".join(BLOCK.findall(PAGE))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "layouts", "docs/layouts.md", 0)
    found = doctest.DocTestRunner(optionflags=0).run(parsed, out=said.append)
    assert found.attempted > 30 and found.failed == 0, "".join(said)


def test_the_table_has_every_operation():
    operations = {
        name
        for name, value in vars(algebra).items()
        if inspect.isfunction(value) and value.__module__ == algebra.__name__ and name[0] != "_"
    }
    assert operations == set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))


def test_the_page_says_how_many_cases_the_oracle_has():
    table = json.loads((ROOT / "backends/gpu/layout/testdata/cute.json").read_text())
    assert f"on {sum(len(v) for v in table.values() if isinstance(v, list))} cases" in PAGE
