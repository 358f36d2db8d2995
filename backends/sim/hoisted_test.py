"""Attention with values wider than a tile converts its probabilities once."""

from dataclasses import replace

import numpy as np

from backends.registry import REGISTRY, served_by, target
from backends.sim.backend import Sim
from ir.lower.lower import lower
from ir.reference.inputs import random_inputs
from testing.samples.samples import decisions, workload

LINES = (
    *("tile(h, size=1)", "tile(m, size=16)", "tile(d, size=16)"),
    *("place(h.outer, level=grid)", "place(m.outer, level=grid)", "place(d.outer, level=loop)"),
    *("compute(s, unit=matrix)", "compute(o, unit=matrix)", "precision(o, dtype=bf16)"),
    "pipeline(v, stages=4)",
)
SIZES = {"H": 1, "M": 64, "N": 256, "D": 64}
CONVERTED = "map(Op::copy, o_a_t.next()"
LOOP = "for (Index d_at"


def test_probabilities_are_converted_before_the_loop_over_columns_of_values(tmp_path):
    backend, spec = Sim(REGISTRY.manifest("sim")), workload("attention").spec
    machine = served_by(target("npu"), backend)
    each = replace(machine, rendering=replace(machine.rendering, hoists=False))
    inputs = random_inputs(spec, SIZES, np.random.default_rng(4))
    found = {}
    for name, chip in (("once", machine), ("each", each)):
        nest = lower(spec, decisions(spec, *LINES), chip, SIZES)
        source = backend.emit(nest, chip)
        assert source.count(CONVERTED) == 1
        within = source.index(CONVERTED) > source.rindex(LOOP)
        assert within == (name == "each")
        (tmp_path / name).mkdir()
        built = backend.build(source, nest, chip, tmp_path / name)
        outputs = backend.run(built, nest, chip, SIZES, inputs)
        found[name] = outputs["y"], backend.time(built, nest, chip, SIZES, inputs).us
    assert np.array_equal(found["once"][0], found["each"][0])
    assert found["once"][1] < found["each"][1], "three of four conversions are saved"
