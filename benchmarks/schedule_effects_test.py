"""Tests that recorded effects are those of the current simulator."""

import json
from pathlib import Path

import pytest

from backends.registry import target
from benchmarks.effect_cases import cases
from benchmarks.schedule_effects import effect, main, schedule_of

RESULTS = Path(__file__).parent / "results"
TARGETS = ("npu", "npu_small")


def rows(name):
    return json.loads((RESULTS / name / "effects.json").read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("name", TARGETS)
def test_every_case_is_recorded(name):
    found = [(r["topic"], r["variant"], r["schedule_text"]) for r in rows(name)]
    assert found == [(c.topic, c.variant, str(schedule_of(c, target(name)))) for c in cases()]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("topic", ["search", "attention"])
def test_a_case_takes_as_long_as_it_was_recorded(name, topic):
    case = next(c for c in cases() if c.topic == topic)
    recorded = next(r for r in rows(name) if r["topic"] == topic)
    assert effect(case, target(name)) == recorded


def test_what_does_not_fit_is_recorded_with_the_reason():
    refused = [r for r in rows("npu_small") if r["us"] is None]
    assert refused and all("needs" in r["reason"] for r in refused)


def test_an_unknown_topic_is_named(tmp_path, capsys):
    out = tmp_path / "x.json"
    assert main(["--target=npu", "--topics=colour", f"--out={out}"]) == 2
    assert "no topic `colour`" in capsys.readouterr().err
    assert not out.exists()


def test_the_command_writes_what_it_was_asked_for(tmp_path):
    out = tmp_path / "x.json"
    assert main(["--target=npu", "--topics=search", f"--out={out}"]) == 0
    written = json.loads(out.read_text(encoding="utf-8"))
    assert {r["topic"] for r in written["rows"]} == {"search"}
    assert written["rows"] == [r for r in rows("npu") if r["topic"] == "search"]
