"""Recurrences on the simulated accelerator: its host launches a kernel once for each step."""

import numpy as np
import pytest

from backends.registry import REGISTRY, target
from backends.sim.backend import Sim
from ir.autoschedule.autoschedule import autoschedule, plain
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.samples.samples import RECURRENT, workload


@pytest.mark.parametrize("chip", ["npu", "npu_small"])
@pytest.mark.parametrize("name", RECURRENT)
def test_what_is_simulated_is_what_the_reference_computes(name, chip, tmp_path):
    machine, backend = target(chip), Sim(REGISTRY.manifest("sim"))
    w = workload(name)
    scheduler = autoschedule if chip == "npu_small" else plain
    nest = lower(w.spec, scheduler(w.spec, machine, w.checks[-1]), machine, w.checks[-1])
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)
    for sizes in w.checks:
        inputs = random_inputs(w.spec, sizes, np.random.default_rng(2))
        found = backend.run(built, nest, machine, sizes, inputs)
        for output, array in evaluate(w.spec, inputs, sizes).items():
            np.testing.assert_allclose(found[output], array, 1e-4, 1e-4)


def test_the_time_is_that_of_all_steps(tmp_path):
    machine, backend = target("npu_small"), Sim(REGISTRY.manifest("sim"))
    spec = workload("backwards").spec
    sizes = {"T": 4, "D": 64}
    nest = lower(spec, plain(spec, machine, sizes), machine, sizes)
    built = backend.build(backend.emit(nest, machine), nest, machine, tmp_path)

    def us(steps):
        given = sizes | {"T": steps}
        inputs = random_inputs(spec, given, np.random.default_rng(2))
        return backend.time(built, nest, machine, given, inputs).us

    few, more = us(4), us(12)
    assert more - few == pytest.approx(2 * (us(8) - few), rel=0.05)
    assert more > 2.5 * few
