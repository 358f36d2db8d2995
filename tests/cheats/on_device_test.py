"""The command of the device, without one: which cases it means, and what its file says of them."""

import json

import pytest

from search.core.evaluation import Evaluation, Failure
from tests.cheats import on_device
from tests.cheats.case import Case
from tests.cheats.on_device import cases, grouped, main, places_of, row

FACTS = {
    "machine": "a chip",
    "driver": "1",
    "versions": {"torch": "2"},
    "clocks_mhz": {"sm": 1, "memory": 2, "sm_max": 3},
}
CHEAT = Case("c", "it is wrong", "twice", "cuda", stage="check", said="output `y`", group=5)
HONEST = Case("h", "it is right", "twice", "cuda")
RIGHT = Evaluation(3.0, "measured", "device", seconds={"check": 1.0, "time": 0.25})


@pytest.fixture
def no_device(monkeypatch):
    """A machine without a GPU, of which the command thinks that it has one."""
    monkeypatch.setattr(on_device.machine_room, "require", lambda machine: {})
    monkeypatch.setattr(on_device.machine_room, "facts", lambda: FACTS)


def test_every_language_has_the_equations_and_its_own_sources():
    meant, left_out = cases(places_of("h200"))
    names = [case.name for case in meant]
    assert len(set(names)) == len(names)
    by = {place: [c for c in meant if c.place == place] for place in ("cuda", "triton")}
    assert sum(map(len, by.values())) == len(meant)
    for some in by.values():
        assert sum(bool(c.stage) for c in some) >= 60 and sum(not c.stage for c in some) >= 40
        assert any(c.edits and c.stage == "check" for c in some)
    # What is written for the interpreted target's own text, and for that alone.
    assert "more warps in a source for triton" in left_out
    assert not [name for name in left_out if "triton" not in name]


def test_groups_are_of_one_kernel_and_short():
    meant, _ = cases(places_of("h200"))
    groups = grouped(meant)
    assert sorted(c.name for g in groups for c in g) == sorted(c.name for c in meant)
    for group in groups:
        assert len({(c.kernel, bool(c.edits)) for c in group}) == 1
        assert len(group) <= on_device.MOST


@pytest.mark.parametrize(
    ("case", "found", "right"),
    [
        (CHEAT, Failure("check", "wrong", "output `y` is off"), True),
        (CHEAT, Failure("check", "wrong", "it crashed"), False),
        (CHEAT, Failure("build", "refused", "output `y` is off"), False),
        (CHEAT, Failure("check", "machine", "output `y`, perhaps"), False),
        (CHEAT, RIGHT, False),
        (HONEST, RIGHT, True),
        (HONEST, Failure("check", "wrong", "output `y` is off"), False),
    ],
)
def test_a_row_is_as_expected_for_its_reason_alone(case, found, right):
    made = row(case, found)
    assert made["as_expected"] is right
    assert made["verdict"] == ("accepted" if found is RIGHT else "refused")


def test_the_command_writes_what_became_of_each(no_device, tmp_path, capsys):
    """Without a GPU the kernels are interpreted: the way is the same."""
    out = tmp_path / "cheats.json"
    words = ["--target=h200", f"--out={out}", "--workers=2", "--only=three times in f16, by cuda"]
    assert main(words) == 0
    assert "0 of 0 cheats refused for their reason, 1 of 1 honest" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found["not_reached"] == [] and found["rows"][0]["verdict"] == "accepted"
    assert found["machine"] == "a chip" and found["secret"]


def test_what_is_not_reached_is_not_as_expected(no_device, tmp_path):
    out = tmp_path / "cheats.json"
    words = ["--target=h200", f"--out={out}", "--only=three times in f16, by cuda", "--seconds=-1"]
    assert main(words) == 1
    assert json.loads(out.read_text())["not_reached"] == ["three times in f16, by cuda"]


def test_wrong_use_is_bad_input(no_device, tmp_path, capsys):
    assert main(["--target=npu", f"--out={tmp_path / 'o.json'}"]) == 2
    assert "no languages are known" in capsys.readouterr().err
    assert main(["--target=h200", f"--out={tmp_path / 'o.json'}", "--only=nothing so"]) == 2
