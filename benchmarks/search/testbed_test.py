"""Tests that the testbed leaves headroom: seed schedules on npu take much longer than the
roofline."""

from functools import cache

import numpy as np
import pytest

from backends.registry import backend_for, served_by, target
from benchmarks.search.__main__ import main
from benchmarks.search.kernels import GROUP, chosen, named, testbed_kernels
from benchmarks.search.rows import read
from ir.autoschedule.autoschedule import autoschedule
from ir.errors import KernelError
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from search.core.workload import WeightedShape, bound_us

HEADROOM = 0.6  # Share of the roofline's speed that no seed schedule reaches.
KERNELS = testbed_kernels()


@cache
def seed_share(kernel, folder):
    """Returns the roofline over the simulated time of the seed schedule."""
    w, chip = named(kernel), target("npu")
    backend = backend_for(chip, None)
    machine = served_by(chip, backend)
    nest = lower(w.spec, autoschedule(w.spec, machine, w.tune), machine, w.tune)
    built = backend.build(backend.emit(nest, machine), nest, machine, folder)
    inputs = random_inputs(w.spec, w.tune, np.random.default_rng(0))
    us = backend.time(built, nest, machine, w.tune, inputs).us
    return bound_us(w.spec, machine, (WeightedShape(w.tune),)) / us


def test_the_testbed_has_kernels_of_several_sorts():
    assert len(KERNELS) >= 6
    assert chosen((GROUP, "softmax", "softmax")) == (*KERNELS, "softmax")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_seed_schedule_is_far_from_the_roofline(kernel, tmp_path):
    assert seed_share(kernel, tmp_path) < HEADROOM


def test_an_unknown_kernel_is_named_with_those_there_are():
    with pytest.raises(KernelError) as caught:
        named("matmul_epilog")
    assert caught.value.what == "no kernel `matmul_epilog`"
    assert "matmul_epilogue" in caught.value.hint


def test_the_time_model_alone_compares_policies(tmp_path):
    places = ["--store", str(tmp_path / "s.db"), "--out", str(tmp_path / "r.json")]
    usual = ["--target", "mi300", "--modelled", "--kernels", "batched_matmul", "--seeds", "1"]
    more = ["--configurations", "greedy", "tpe", "--evaluations", "6"]
    assert main([*usual, *places, *more]) == 0
    rows = read(tmp_path / "r.json")
    assert [r["configuration"] for r in rows] == ["greedy", "tpe"]
    for r in rows:
        assert (r["time_kind"], r["correct_by"]) == ("modelled", "unchecked")
        assert r["made"] == 6 and r["us"] <= r["first_us"]


def test_a_target_without_a_time_model_is_refused(tmp_path, capsys):
    places = ["--store", str(tmp_path / "s.db"), "--out", str(tmp_path / "r.json")]
    asked = ["--target", "npu", "--modelled", "--kernels", "batched_matmul", *places]
    assert main([*asked, "--configurations", "greedy"]) == 2
    assert "has no time model" in capsys.readouterr().err
    assert not (tmp_path / "r.json").exists()
