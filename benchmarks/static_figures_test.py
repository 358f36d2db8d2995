"""Tests build reports in all languages of a target."""

import json

import pytest

from benchmarks.static_figures import main, ratios
from ir.errors import KernelError

ROWS = [
    {"kernel": "a", "one": {"us": 8.0}, "other": {"us": 2.0}},
    {"kernel": "b", "one": {"us": 2.0}, "other": {"us": 2.0}},
    {"kernel": "c", "one": {"us": 2.0}, "other": {"failure": "spills"}},
]


def test_ratios_are_of_the_kernels_that_both_built():
    assert ratios(ROWS, "one", "other") == {"kernels": 2, "geometric_mean": 2.0, "min": 1.0}
    assert ratios(ROWS[2:], "one", "other")["geometric_mean"] is None


def test_a_file_has_the_figures_of_each_language(tmp_path):
    file = tmp_path / "found.json"
    assert main(["--target=mi300", f"--out={file}", "--kernels=pairwise_dot"]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    (row,) = found["rows"]
    for language in found["static"]:
        assert row[language]["mix.matrix"] > 0 and row[language]["us"] > 0


def test_an_unknown_kernel_is_refused(tmp_path):
    with pytest.raises(KernelError, match="no kernel `nothing`"):
        main(["--target=mi300", f"--out={tmp_path / 'x.json'}", "--kernels=nothing"])
