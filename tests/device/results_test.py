"""The result file of the device suite: parts add to it, and another day begins it anew."""

import json

import pytest

from tests.device.results import write

HEAD = {"command": "c", "date": "2026-11-28", "machine": "m", "driver": "d", "versions": {}}


def row(test, outcome="passed"):
    return {"test": test, "outcome": outcome}


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "suite.json"
    write(found, [row("a"), row("b", "failed")], {**HEAD, "clocks_mhz": 1})
    return found


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


def test_a_part_adds_its_rows_and_replaces_those_that_it_has_too(file):
    write(file, [row("b"), row("c", "skipped")], {**HEAD, "clocks_mhz": 2})
    found = read(file)
    assert found["rows"] == [row("a"), row("b"), row("c", "skipped")]
    assert [found[n] for n in ("passed", "failed", "skipped", "clocks_mhz")] == [2, 0, 1, 2]


@pytest.mark.parametrize("name", ["date", "machine", "driver", "versions"])
def test_nothing_is_kept_of_another_day_machine_or_version(file, name):
    write(file, [row("c")], {**HEAD, name: "another"})
    assert read(file)["rows"] == [row("c")]
