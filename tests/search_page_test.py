"""The page on the search: it names every policy and measure, and its example is one."""

import dataclasses
import json
import re
import sys
import types

import pytest

from search.core.measures import MEASURES
from search.core.settings import Settings
from search.policy import NAMES, POLICIES
from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def section(title):
    """The text of a section, up to the next."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/search.md has no section {title}"
    return found[1]


def cells(title):
    """The rows of a section's tables, by each name in their first cell."""
    lines = section(title).splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| `")]
    return {name: row for row in rows for name in re.findall("`([^`]+)`", row[0])}


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_is_in_the_table_with_its_parameters(name):
    said = cells("Policies")[name][-1]
    for field in dataclasses.fields(POLICIES[name.partition(":")[0]]):
        if "read" in field.metadata:
            assert f"`{field.name}`" in said
            if f"`{field.name}` (" in said and isinstance(field.default, float | int):
                assert f"{field.default:g}" in said


def test_the_tables_name_nothing_else():
    assert set(cells("Policies")) == set(NAMES)
    assert set(cells("Measures")) == set(MEASURES)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_is_in_the_table_with_its_bins(name):
    assert cells("Measures")[name][-1].strip().rstrip(" |") == ", ".join(MEASURES[name].labels)


SPREAD = json.loads((ROOT / "benchmarks/results/npu/spread.json").read_text(encoding="utf-8"))


def test_the_spread_is_that_of_the_result_file():
    found = {", ".join(s["measures"]): s for sets in SPREAD["summary"].values() for s in sets}
    lines = [line.strip("| ").split(" | ") for line in section("Measures").splitlines()]
    rows = [line for line in lines if line[0] in found]
    assert len(rows) > len(MEASURES)
    for name, *numbers in rows:
        spread = found[name]
        assert numbers == [
            f"{spread['bits']:.2f}",
            f"{spread['cells']:.1f}",
            f"{spread['good']:.1f}",
        ]
    assert f"of {SPREAD['evaluations']} candidates that `{SPREAD['policy']}`" in PAGE


def test_the_usual_measures_are_the_two_that_keep_most_good_candidates_apart():
    usual = next(f.default for f in dataclasses.fields(Settings) if f.name == "measures")
    assert max(SPREAD["summary"]["2"], key=lambda s: s["good"])["measures"] == list(usual)


def test_the_example_of_a_policy_passes_the_example_of_its_test(monkeypatch):
    code, test = BLOCK.findall(section("Policies"))
    module = types.ModuleType("search.policy.oldest")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(code, module.__dict__)
    found = {}
    exec(test, found)
    tests = [value for name, value in found.items() if name.startswith("test_")]
    assert tests
    for one in tests:
        one()
