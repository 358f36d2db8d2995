"""A kernel that writes to an input is refused, although the simulator's memory permits it."""

import numpy as np
import pytest

from backends.backend import BackendError
from backends.registry import REGISTRY, target
from backends.sim.backend import Sim
from ir.autoschedule.autoschedule import plain
from ir.lower.lower import lower
from testing.samples.samples import spec_of

MACHINE = target("npu_small")


def test_a_kernel_that_changes_its_input_is_refused(tmp_path):
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f32[M]", result="f32[M]")
    nest = lower(spec, plain(spec, MACHINE, {"M": 9}), MACHINE, {"M": 9})
    sim = Sim(REGISTRY.manifest("sim"))
    source = sim.emit(nest, MACHINE)
    spoiled = source.replace("pe.store(y_g,", "pe.store(x_g,")
    assert spoiled != source
    inputs = {"x": np.ones(9, np.float32)}
    for text, folder in ((source, tmp_path / "right"), (spoiled, tmp_path / "wrong")):
        folder.mkdir()
        built = sim.build(text, nest, MACHINE, folder)
        if text is source:
            assert (sim.run(built, nest, MACHINE, {"M": 9}, inputs)["y"] == 2).all()
            continue
        with pytest.raises(BackendError, match="'x' is an input; a kernel does not change it"):
            sim.run(built, nest, MACHINE, {"M": 9}, inputs)
