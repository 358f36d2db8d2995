"""Tests that the origin of a source is known for each character."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from backends.emit import Templates
from backends.registry import backend, served_by, target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from testing.samples.samples import KERNELS, LIBRARY, workload
from testing.slow import slow
from tools.spelled import main, marking, plain, records, shares

ROOT = LIBRARY.parent.parent
MOST = 0.2  # Limit of the share of characters, for a language with a macro for each node.


@dataclass(frozen=True)
class Thing:
    """Holds a string and a number."""

    name: str
    size: int


def rendered(folder, text, **values):
    """Returns the marked and the plain text of a template."""
    (folder / "some").mkdir()
    (folder / "some" / "t.j2").write_text(text)
    with marking() as found:
        made = Templates("some", folder=folder).render("t.j2", **values)
    return found[0], made


def test_strings_numbers_and_templates_are_told_apart(tmp_path):
    marked, made = rendered(tmp_path, "ab{{ t.name }}{{ t.size }}", t=Thing("xyz", 42))
    assert made == plain(marked) == "abxyz42"
    found = shares([marked])
    assert {name: round(share * 7) for name, share in found.items()} == {
        "templates": 2,
        "strings": 3,
        "numbers": 2,
    }


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'ab%s' % t.name }}",
        "{{ 'ab{}'.format(t.name) }}",
        "{{ 'ab' ~ t.name }}",
        "{{ ['a', 'b'] | join }}{{ t.name | upper }}",
        "{% macro m(x) %}b{{ x }}{% endmacro %}a{{ m(t.name) }}",
        "{% set d = {'xyz': 'ab'} %}{{ d[t.name] }}{{ [t.name] | join }}",
    ],
)
def test_a_string_stays_what_it_is_however_it_is_put_in(tmp_path, text):
    marked, _ = rendered(tmp_path, text, t=Thing("xyz", 1))
    assert round(shares([marked])["strings"] * len(marked)) == 3
    assert len(marked) == 5


@pytest.mark.parametrize("machine", ["h200", slow("mi300"), "npu", slow("npu_small"), "cpu"])
def test_templates_spell_what_is_emitted(machine):
    texts = dict(records(ROOT, machine))
    assert texts and shares(list(texts.values()))["strings"] <= MOST


def test_templates_spell_thread_programs():
    serving = backend("cuda")
    machine = served_by(target("a100"), serving)
    with marking() as found:
        for name in KERNELS:
            work = workload(name)
            decided = autoschedule(work.spec, machine, work.tune)
            serving.emit(lower(work.spec, decided, machine, work.tune), machine)
    assert len(found) == len(KERNELS) and shares(found)["strings"] <= MOST


def test_the_command_prints_a_line_for_each_record(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    (tmp_path / "kernels_generated").mkdir()
    for part in ROOT.glob("kernels_generated/softmax/npu"):
        (tmp_path / "kernels_generated" / "softmax").mkdir()
        (tmp_path / "kernels_generated" / "softmax" / "npu").symlink_to(part)
        spec = tmp_path / "kernels_generated" / "softmax" / "spec.kir"
        spec.symlink_to(part.parent / "spec.kir")
    assert main(["npu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["softmax npu", "all npu"]
    assert all("templates " in line and "strings " in line for line in lines)
