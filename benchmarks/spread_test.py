"""Tests what measures distinguish, from a search and from known bins."""

import json

import pytest

from benchmarks.spread import main, summary
from search.core.measures import MEASURES


def row(kernel, us, **bins):
    same = {name: [0] * len(us) for name in MEASURES}
    return {"kernel": kernel, "us": us, "bins": same | bins}


def of(found, *names):
    return next(s for s in found[str(len(names))] if s["measures"] == list(names))


def test_bits_cells_and_good_ones_are_means_over_kernels():
    found = summary(
        [
            row("one", [1.0, 1.5, 2.0, 9.0], on_chip=[0, 1, 2, 3], traffic=[0, 0, 1, 1]),
            row("two", [1.0, 1.0], on_chip=[2, 2], traffic=[0, 1]),
            row("none", []),
        ]
    )
    assert of(found, "on_chip") == {"measures": ["on_chip"], "bits": 1.0, "cells": 2.5, "good": 1.5}
    assert of(found, "traffic")["bits"] == 1.0
    assert of(found, "launches")["bits"] == 0.0
    assert of(found, "on_chip", "traffic")["cells"] == 3.0
    assert found["1"][0]["bits"] >= found["1"][-1]["bits"]


def test_nothing_correct_spreads_nothing():
    assert summary([row("none", [])]) == {"1": [], "2": [], "3": []}


def test_a_search_is_told_apart_by_its_measures(tmp_path, capsys):
    out = tmp_path / "spread.json"
    words = ["--target=null", "--kernels=softmax", "--evaluations=6", f"--out={out}"]
    assert main(words) == 0
    table = json.loads(out.read_text(encoding="utf-8"))
    (found,) = table["rows"]
    assert len(found["us"]) + found["failed"] == 6
    assert all(len(bins) == len(found["us"]) for bins in found["bins"].values())
    assert "on_chip" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--kernels=soup"], ["--policy=lucky", "--kernels=softmax"]])
def test_what_there_is_not_is_refused(words, tmp_path, capsys):
    assert main(["--target=null", f"--out={tmp_path / 'x'}", *words]) == 2
    assert "allowed" in capsys.readouterr().err
