"""Tests variants of schedules on a GPU: all lower, and the command reports a time or a reason."""

import json

import pytest

from backends.registry import backend, served_by, target
from benchmarks import verb_effects
from benchmarks.verb_cases import changed, verb_cases
from ir.lower.lower import lower
from ir.parse.parse import parse_schedule

CASES = list(verb_cases())
MACHINE = served_by(target("h200"), backend("cuda"))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.topic}-{c.variant}")
def test_a_case_is_a_schedule_of_its_kernel(case):
    spec = case.work().spec
    text = "\n".join((f"schedule({spec.name})", *case.lines)) + "\n"
    lower(spec, parse_schedule(text), MACHINE, case.sizes)


def test_variants_of_a_topic_differ_in_their_decisions():
    assert len({(c.topic, frozenset(c.lines)) for c in CASES}) == len(CASES)


def test_a_change_takes_the_place_of_its_like_or_is_added_or_taken_away():
    lines = ("tile(m, size=8)", "threads(y, count=32)")
    assert changed(lines, "tile(m, size=4)", "copy(x, by=bulk)", "-threads(y)") == (
        "tile(m, size=4)",
        "copy(x, by=bulk)",
    )
    with pytest.raises(KeyError):
        changed(lines, "-tile(n)")


def test_the_command_tells_times_of_what_is_right_and_reasons_of_the_rest(tmp_path, monkeypatch):
    kept = [c for c in CASES if c.topic == "cache"][:2]
    small = [
        verb_effects.VerbCase(c.topic, c.variant, c.kernel, dict(M=8, K=64), c.lines) for c in kept
    ]
    wrong = verb_effects.VerbCase(
        "cache", "no such", "softmax", dict(M=8, K=64), ("tile(q, size=3)",)
    )
    monkeypatch.setattr(verb_effects, "verb_cases", lambda: [*small, wrong])
    out = tmp_path / "effects.json"
    assert verb_effects.main(["--target=h200", "--backend=cuda", f"--out={out}"]) == 0
    found = json.loads(out.read_text())
    assert found["correct_by"] == "interpreter" and found["backend"] == "cuda"
    *good, bad = found["rows"]
    assert [r["time_kind"] for r in good] == ["modelled", "modelled"]
    assert all(r["us"] > 0 and r["figures"]["registers"] > 0 and not r["reason"] for r in good)
    assert bad["us"] is None and "`q`" in bad["reason"]


def test_an_unknown_topic_is_refused(tmp_path, capsys):
    words = ["--target=h200", "--backend=cuda", "--topics=fame", f"--out={tmp_path / 'x'}"]
    assert verb_effects.main(words) == 2
    said = capsys.readouterr().err
    assert "there is no topic `fame`" in said and "allowed: copies, stages" in said
