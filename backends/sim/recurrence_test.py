"""The time of a recurrence: its host launches a kernel once for each step."""

import numpy as np
import pytest

from backends.registry import REGISTRY, target
from backends.sim.backend import Sim
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from testing.samples.samples import workload


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
