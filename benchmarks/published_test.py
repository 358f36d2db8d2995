"""Tests that published figures appear with modelled ones, and that each names its source and an
existing spec."""

import json

import pytest

from backends.registry import target
from benchmarks import published
from benchmarks.published import FIGURES, figures, main, spec_text, summary
from ir.errors import KernelError
from ir.parse.parse import parse_workload
from ir.sizes import free_sizes


@pytest.mark.parametrize("name", sorted(p.stem for p in FIGURES.glob("*.toml")))
def test_each_figure_has_a_source_a_spec_and_all_sizes(name):
    assert target(name).name == name
    for one in figures(name):
        text = spec_text(one["spec"])
        assert set(free_sizes(parse_workload(text, one["spec"]).spec)) == set(one["sizes"])
        assert one["source"] and one["url"].startswith("https://")
        assert ("us" in one) != ("tflops" in one)


def test_a_row_has_the_error_of_each_language(tmp_path, monkeypatch):
    small = {**figures("mi300")[0], "sizes": {"M": 256, "N": 256, "K": 256}, "tflops": 1.0}
    monkeypatch.setattr(published, "figures", lambda name: [small])
    file = tmp_path / "found.json"
    assert main(["--target=mi300", f"--out={file}"]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    (row,) = found["rows"]
    assert row["published_us"] == pytest.approx(2 * 256**3 * 1e-6, rel=1e-3)
    for name in found["published"]:
        us = row[name]["us"]
        assert row[name]["error"] == pytest.approx(us / row["published_us"] - 1, abs=2e-3)
        assert found["summary"][name] == pytest.approx(row["published_us"] / us)


def test_failures_are_left_out_of_the_mean():
    rows = [
        {"published_us": 8.0, "a": {"us": 2.0}, "b": {"failure": "spills"}},
        {"published_us": 1.0, "a": {"us": 1.0}, "b": {"failure": "spills"}},
    ]
    assert summary(rows, ("a", "b")) == {"a": 2.0}


def test_a_target_without_figures_is_refused():
    with pytest.raises(KernelError, match="(?s)nothing published is kept for `null`.*mi300"):
        figures("null")
