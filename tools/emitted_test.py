"""Tests that the page shows the emitted kernels."""

from __future__ import annotations

import pytest

from ir.errors import KernelError
from tools import emitted
from tools.emitted import DOCS, page
from tools.kernels import LIBRARY

ROOT = LIBRARY.parent.parent
SCHEDULE = "```text\nschedule(softmax)\ntile(m, size=2)\nplace(m.outer, level=grid)\n```\n"
MARKED = "<!-- emitted: softmax h200 -->\nold\n<!-- end -->\nafter\n"


def test_the_pages_show_what_is_emitted():
    texts = [p.read_text(encoding="utf-8") for p in (ROOT / DOCS).glob("*.md")]
    shown = [text for text in texts if "<!-- emitted: " in text]
    assert shown
    assert all(page(text) == text for text in shown), "run `bazel run //tools:emitted`"


def test_a_kernel_is_emitted_from_the_schedule_above_it():
    made = page(SCHEDULE + MARKED)
    assert "```python\n@triton.jit\ndef softmax_0(" in made and "def launch(" not in made
    assert "old" not in made and made.endswith("```\n<!-- end -->\nafter\n")
    assert page(made) == made


def test_a_marker_without_a_schedule_is_refused():
    with pytest.raises(KernelError, match="no schedule of `softmax`"):
        page(MARKED + SCHEDULE)


@pytest.mark.parametrize("text", [SCHEDULE + MARKED, SCHEDULE])
def test_the_command_checks_and_writes(tmp_path, monkeypatch, text):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    (tmp_path / "docs").mkdir()
    (tmp_path / DOCS / "one.md").write_text(text)
    assert emitted.main(["--check"]) == int(text != SCHEDULE)
    assert emitted.main([]) == 0 and emitted.main(["--check"]) == 0
    (tmp_path / DOCS / "one.md").write_text(MARKED)
    assert emitted.main([]) == 2
