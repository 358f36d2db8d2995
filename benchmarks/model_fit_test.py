"""Tests that fitting finds the weights of synthetic measurements."""

import json
from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest

from backends.gpu.model.model import Weights, combine
from backends.registry import backend_for, target
from benchmarks.draws import SIZES, spec_of
from benchmarks.model_fit import (
    TERMS,
    data_of,
    fitted,
    held_out,
    loss,
    main,
    predicted,
    quality,
)
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower

START = Weights(**{f.name: 0.2 if f.name == "loss" else 1.0 for f in fields(Weights)})
TRUE = replace(START, dram=2.5, matrix=3.0, wait=0.5, loss=0.1)


def made_rows(weights, count=40):
    """Returns rows of three kernels with the model's times under some weights."""
    rng = Random(1)
    rows = []
    for kernel in "abc":
        for n in range(count):
            terms = {
                f"{launch}.{t}_us": 2.0 if t == "launch" else rng.choice((1, 3, 10, 30, 60))
                for launch in ("k_0", "k_1")[: 1 + n % 2]
                for t in (*TERMS, "programs")
            }
            us = sum(
                combine(
                    {k.split(".")[1]: v for k, v in terms.items() if k.startswith(launch)}, weights
                )
                for launch in ("k_0", "k_1")[: 1 + n % 2]
            )
            rows.append({"kernel": kernel, "correct": True, "measured_us": us, "terms": terms})
    rows.append({"kernel": "a", "correct": False, "measured_us": None})
    return rows


def test_all_rows_at_once_are_as_one_at_a_time():
    data = data_of(made_rows(TRUE))
    assert predicted(data, TRUE) == pytest.approx(data.true)


def test_the_terms_of_a_modelled_kernel_are_those_of_its_launches():
    spec, machine, sizes = spec_of("softmax"), target("h200"), SIZES["softmax"]
    nest = lower(spec, autoschedule(spec, machine, sizes), machine, sizes)
    timing = backend_for(machine).model(nest, machine, sizes, {})
    row = {"kernel": "softmax", "correct": True, "measured_us": 1.0, "terms": timing.figures}
    data = data_of([row])
    assert len(data.terms) == len(nest.launches)
    assert predicted(data, Weights()) == pytest.approx([timing.us])


def test_fitting_comes_near_the_weights_that_made_the_times():
    data = data_of(made_rows(TRUE))
    kept = np.ones(len(data.true), bool)
    best = fitted(data, start=START)
    assert loss(data, best, kept, START) < 0.3 * loss(data, START, kept, START)
    assert best.matrix > 1.5 and best.dram > 1.3
    ranked = quality(data, dict.fromkeys(range(3), best))["all"]
    assert ranked["rho"] > quality(data, dict.fromkeys(range(3), START))["all"]["rho"]
    assert ranked["regret"] >= 1


def test_weights_of_a_kernel_held_out_do_not_see_it():
    rows = made_rows(TRUE, 10)
    for row in rows:
        if row["kernel"] == "c" and row["correct"]:
            row["measured_us"] *= 1 + 5 * (row["terms"]["k_0.vector_us"] > 20)
    data = data_of(rows)
    other = data_of([r for r in rows if r["kernel"] != "c"])
    assert held_out(data)[2] == fitted(other)


def test_the_command_prints_the_weights(tmp_path, capsys):
    file = tmp_path / "r.json"
    file.write_text(json.dumps({"rows": made_rows(TRUE, 6)}))
    assert main([str(file)]) == 0
    text = capsys.readouterr().out
    assert "weights: {'launch'" in text and "all " in text
    assert main(["--json", str(file)]) == 0
    assert set(json.loads(capsys.readouterr().out)["weights"]) == {*TERMS, "loss"}
    file.write_text(json.dumps({"rows": []}))
    assert main([str(file)]) == 2
    for wrong in (tmp_path / "none.json", tmp_path):
        capsys.readouterr()
        assert main([str(wrong)]) == 2
        assert f"{wrong}: this is no result file" in capsys.readouterr().err
