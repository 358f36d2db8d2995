"""Tests that a target file is checked as a whole: every error is reported with its field."""

from __future__ import annotations

import re

import pytest

from backends.registry import REGISTRY, target
from ir.errors import KernelError
from tools.check_target import main

TARGETS = REGISTRY.folder / "targets"
CHIP = (TARGETS / "a100.toml").read_text(encoding="utf-8").replace('"a100"', '"my_chip"', 1)


@pytest.fixture
def check(tmp_path, capsys):
    """Returns the exit code of the command and the lines that it prints, for a text."""

    def run(text):
        file = tmp_path / "my_chip.toml"
        file.write_text(text, encoding="utf-8")
        return main([str(file)]), capsys.readouterr().out

    return run


def changed(*pairs):
    """Returns the text of a valid file with lines replaced: (start of a line, new line)."""
    text = CHIP
    for start, line in pairs:
        text, count = re.subn(rf"(?m)^{re.escape(start)}.*$", line, text, count=1)
        assert count, start
    return text


def test_the_projects_targets_are_right(capsys):
    files = [str(TARGETS / f"{name}.toml") for name in REGISTRY.target_names(for_tests=True)]
    assert main(files) == 0
    assert capsys.readouterr().out.count(": right: ") == len(files)


def test_all_disagreements_are_said_at_once(check):
    code, said = check(
        changed(
            ("shared_bytes_per_unit", "shared_bytes_per_unit = 1024"),
            ("programs_per_unit", "programs_per_unit = 4096"),
            ("warps_per_unit", "warps_per_unit = 1"),
            ("warp = ", "warp = 64"),
        )
    )
    fields = ("gpu.shared_bytes_per_unit", "gpu.programs_per_unit", "gpu.warps_per_unit")
    assert code == 2 and all(f"field `{f}`" in said for f in (*fields, "levels.warp"))


def test_all_wrong_fields_are_said_at_once_and_nothing_is_compared(check):
    code, said = check(
        changed(
            ("title", "titel = 'a chip'"),
            ("clock_hz", "clock_hz = -1"),
            ("partitions", ""),
            ("arch", "arch = 'none'"),
            ("shared_bytes_per_unit", "shared_bytes_per_unit = 1"),
        )
    )
    fields = ("titel", "title", "gpu.clock_hz", "gpu.partitions")
    assert code == 2 and all(f"field `{f}`" in said for f in fields)
    assert "shared_bytes_per_unit" not in said


def test_the_first_fault_stops_a_search():
    with pytest.raises(KernelError, match="no target"):
        target("my_chip")


def test_a_chip_may_not_have_the_name_of_another(check):
    code, said = check(changed(("name = ", 'name = "h200"')))
    assert code == 2 and "`h200`, which is a target of the project" in said


def test_a_gpu_without_a_matrix_unit_is_refused(check):
    text = re.sub(
        r"(?ms)^\[units\.matrix\].*?(?=^\[)", "", changed(("matrix_dtypes", "matrix_dtypes = []"))
    )
    code, said = check(text)
    assert code == 2 and "field `units.matrix` is missing" in said
