"""Tests that the page that follows a kernel shows its lowered levels."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from backends.registry import target
from ir.errors import KernelError
from tools import walkthrough
from tools.kernels import LIBRARY, named
from tools.show import Lowered, lowered
from tools.walkthrough import PAGE, page

ROOT = LIBRARY.parent.parent
SCHEDULE = "```text\nschedule(softmax)\ntile(m, size=2)\nplace(m.outer, level=grid)\n```\n"
MARKED = "<!-- shown: softmax npu nest -->\nold\n<!-- end -->\nafter\n"


def test_the_page_shows_what_the_kernel_is_lowered_to():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page(text) == text, "run `bazel run //tools:walkthrough`"
    for name in ("npu", "h200"):
        assert "<!-- shown: rmsnorm_matmul npu spec -->" in text
        for level in ("variant", "nest", "source", walkthrough.OWN):
            assert f"<!-- shown: rmsnorm_matmul {name} {level} -->" in text


def test_a_level_is_printed_from_the_schedule_above_it():
    made = page(SCHEDULE + MARKED)
    assert "```text\nnest of softmax for npu" in made and "grid m < M by 2" in made
    assert "old" not in made and made.endswith("```\n<!-- end -->\nafter\n")
    assert page(made) == made


def test_the_levels_of_a_backend_are_shown_one_after_the_other():
    one = lowered(named("softmax"), target("npu"))
    backend = SimpleNamespace(
        manifest=one.backend.manifest,
        emit=one.backend.emit,
        levels=lambda nest, machine: {"tile": "tiles\n", "thread": "threads\n"},
    )
    more = Lowered(one.workload, one.machine, backend, one.nest)
    assert list(walkthrough._blocks(one, walkthrough.OWN)) == []
    assert list(walkthrough._blocks(more, walkthrough.OWN)) == [
        "The level `tile`:\n\n```text\ntiles\n```\n",
        "The level `thread`:\n\n```text\nthreads\n```\n",
    ]


@pytest.mark.parametrize(
    "text, said",
    [
        (MARKED + SCHEDULE, "no schedule of `softmax`"),
        (SCHEDULE + MARKED.replace("nest", "nets"), "there is no level `nets`"),
        (SCHEDULE + MARKED.replace("npu", "npv"), "there is no target `npv`"),
    ],
)
def test_a_marker_that_cannot_be_filled_is_refused(text, said):
    with pytest.raises(KernelError, match=said):
        page(text)


def test_the_command_checks_and_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    (tmp_path / "docs").mkdir()
    (tmp_path / PAGE).write_text(SCHEDULE + MARKED)
    assert walkthrough.main(["--check"]) == 1
    assert walkthrough.main([]) == 0 and walkthrough.main(["--check"]) == 0
    (tmp_path / PAGE).write_text(MARKED)
    assert walkthrough.main([]) == 2
