"""Tests that the tables of docs/search_ablation.md match the result file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from benchmarks.search.rows import write
from testing.samples.samples import LIBRARY
from tools import search_table
from tools.search_plot import HEIGHT, TOP, plot
from tools.search_table import DRAWING, PAGE, RESULTS, TABLES, drawing, page, together

ROOT = LIBRARY.parent.parent
HEAD = {
    "command": "python3 -m x",
    "date": "2026-11-22",
    "machine": "a chip",
    "versions": {"n": "1"},
}


def row(configuration, us, kernel="k", seed=1):
    return {
        "configuration": configuration,
        "kernel": kernel,
        "seed": seed,
        "target": "chip",
        "evaluations": 4,
        "curve": [[1, 8.0], [3, us]],
        "us": us,
        "time_kind": "simulated",
        "correct_by": "simulator",
        "first_us": 8.0,
        "roofline_us": 1.0,
        "sources": "s",
        "operators": {"first": [1, 1], "step": [3, 1]},
    }


ROWS = [
    row(name, us, kernel, seed)
    for kernel in ("k", "l")
    for seed in (1, 2)
    for name, us in (("good", 2.0), ("random", 4.0), ("good~step", 3.0))
]


@pytest.fixture
def found(tmp_path):
    write(tmp_path / "r.json", HEAD, ROWS)
    return json.loads((tmp_path / "r.json").read_text())


def marked(name, found):
    return page(f"a\n<!-- table: {name} -->\nold\n<!-- end -->\nb\n", found)


def test_policies_are_in_order_with_their_intervals(found):
    lines = marked("policies", found).splitlines()
    assert lines[4].startswith("| `good` | 1.00 (1.00 to 1.00) |") and "| 100% |" in lines[4]
    assert lines[5].startswith("| `random` | 2.00 (2.00 to 2.00) |")
    assert "| 2.0000 (2.0000 to 2.0000) | not run | 5 (5 to 5) | 0% |" in lines[5]


def test_who_beats_whom(found):
    made = marked("wins", found)
    assert "| `good` |  | 100% |" in made and "| `random` | 0% |  |" in made


def test_a_variation_has_a_verdict(found):
    made = marked("variations", found)
    assert "| `good~step` | 4 |" in made and made.splitlines()[4].endswith("| 0% | worse |")


def test_kernels_operators_and_the_origin(found):
    assert "| k | 6 | 8.000 | 2.000 | 1.000 | `good` |" in marked("kernels", found)
    assert "| `step` | 36 | 12 | 33.3 |" in marked("operators", found)
    said = marked("origin", found)
    assert "12 searches of 4 evaluations each by one version of the search's sources" in said
    assert "times simulated, correct by simulator" in said
    assert "4 blocks (a kernel with a seed) of 2 kernels" in said


def test_without_searches_the_tables_say_so(found):
    empty = {
        **found,
        "rows": [],
        "summary": {
            "best_known_us": {},
            "failed": 0,
            "variations": [],
            "policies": {"blocks": [], "rows": [], "wins": {}},
        },
    }
    for name in ("policies", "wins", "variations", "kernels", "operators"):
        assert "\nNot run yet.\n" in marked(name, empty)


def test_the_drawing_has_a_panel_for_each_kernel_and_a_curve_for_each_policy(found):
    root = ET.fromstring(drawing(found))
    space = "{http://www.w3.org/2000/svg}"
    words = [t.text for t in root.iter(f"{space}text")]
    assert {"k", "l", "good", "random", "4 evaluations"} <= set(words)
    paths = [p.get("d") for p in root.iter(f"{space}path") if p.get("stroke-width")]
    assert len(paths) == 2 * 2 + 2
    ends = {p.rpartition(" ")[2] for p in paths[:2]}
    assert ends == {str(float(TOP + HEIGHT)), str(float(TOP))}, "one at the best, one at the edge"


def test_a_drawing_of_nothing_is_still_one():
    assert ET.fromstring(plot([], [])).tag.endswith("svg")


def test_every_table_stands_on_the_page_as_the_result_file_says():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in TABLES)
    if list(ROOT.glob(RESULTS)):
        file = json.loads(search_table.result(ROOT).read_text(encoding="utf-8"))
        assert search_table.written(ROOT)[PAGE] == text, "run `python3 -m tools.search_table`"
        assert (ROOT / DRAWING).read_text(encoding="utf-8") == drawing(file)


def test_the_command_writes_both_and_checks_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    assert search_table.main([]) == 2
    write(tmp_path / RESULTS.replace("*", "chip"), HEAD, ROWS)
    (tmp_path / PAGE).parent.mkdir()
    (tmp_path / PAGE).write_text("<!-- table: policies -->\n<!-- end -->\n")
    assert search_table.main(["--check"]) == 1
    assert search_table.main([]) == 0
    assert search_table.main(["--check"]) == 0
    assert "`good`" in (tmp_path / PAGE).read_text()
    assert (tmp_path / DRAWING).read_text().startswith("<svg")
    assert "up to date" in capsys.readouterr().out


def test_the_testbed_has_a_part_for_each_target(found):
    text = "<!-- table: testbed -->\nold\n<!-- end -->\n"
    assert "Not run yet." in page(text, found)
    made = page(text, found, [found, found])
    assert made.count("On `chip`: ") == 2 and "old" not in made
    assert made.count("| policy |") == made.count("| kernel |") == 2


def test_the_policies_are_compared_over_the_blocks_of_all_targets(tmp_path):
    def bed(target, us):
        rows = [row(name, time) for name, time in (("good", us), ("tpe", 4.0))]
        return {"rows": [{**r, "target": target} for r in rows]}

    made = together([bed("one", 2.0), bed("two", 8.0)])
    assert made.startswith("On `one`, `two` together, 2 blocks:\n")
    assert "| `good` | 1.50 (1.00 to 2.00) | 1.000 (0.500 to 2.000) |" in made
    assert together(2 * [{"rows": [row("good", 2.0)]}]) == ""
