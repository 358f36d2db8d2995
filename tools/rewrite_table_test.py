"""Tests that the table of rewrites matches their docstrings."""

from pathlib import Path

import pytest

from ir.rewrites import REWRITES
from tools import rewrite_table
from tools.rewrite_table import PAGE, page, table

ROOT = Path(__file__).parent.parent
EMPTY = "text\n<!-- table: rewrites -->\n<!-- end -->\nmore\n"


def transposed(spec):
    """before: x | y
    after:  y |
            x

    When equal: always, and
    everywhere.
    """


def test_a_line_has_what_the_rewrite_says():
    assert table({"transposed": transposed}).splitlines()[-1] == (
        "| `transposed` | `x \\| y` | `y \\| x` | always, and everywhere. |"
    )


def test_the_page_names_every_rewrite_as_it_is():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page(text, REWRITES) == text
    assert all(f"| `{name}` |" in text for name in REWRITES)


@pytest.mark.parametrize(
    "text, rewrites, what",
    [("text\n", REWRITES, "there is no"), (EMPTY, {"silent": lambda spec: []}, "`silent`")],
)
def test_what_cannot_be_written_is_a_fault(text, rewrites, what):
    with pytest.raises(ValueError, match=what):
        page(text, rewrites)


def test_the_command_writes_and_compares(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    assert rewrite_table.main([]) == 2
    (tmp_path / PAGE).parent.mkdir()
    (tmp_path / PAGE).write_text(EMPTY)
    assert rewrite_table.main(["--check"]) == 1
    assert rewrite_table.main([]) == 0 and rewrite_table.main(["--check"]) == 0
    assert "up to date" in capsys.readouterr().out
