"""The process for a task's winners: sources by others get a clean process."""

from contextlib import nullcontext

import pytest

from backends.registry import target
from search.cli.task_check import TaskCheck, WinnerTexts, _beside


@pytest.mark.parametrize(
    "chip, backend, edited, clean",
    [
        ("mi300", "triton", True, True),
        ("mi300", "triton", False, False),
        ("npu", "sim", True, False),  # its kernels have their own process anyway
    ],
)
def test_what_somebody_else_wrote_of_a_task_has_a_clean_process(chip, backend, edited, clean):
    winner = WinnerTexts(backend, "", "", "", edited)
    trial = TaskCheck("task.py", "task", (), {backend: target(chip)}, {"kernel": winner})
    assert isinstance(_beside(trial), nullcontext) != clean
