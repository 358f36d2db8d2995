"""The backend lowers a nest once, and another nest anew."""

from __future__ import annotations

import numpy as np

from backends.cuda.backend import Cuda
from backends.cuda.testing.emulation import machine_of
from backends.cuda.testing.samples import emitted, nest_of, work_of
from backends.registry import REGISTRY
from ir.reference.inputs import random_inputs

H200, A100 = machine_of("h200"), machine_of("a100")


def test_all_runs_of_a_check_lower_its_nest_once(monkeypatch, tmp_path):
    made, lowered = [], Cuda.program
    monkeypatch.setattr(Cuda, "program", lambda *n: made.append(n) or lowered(*n))
    cuda, nest = Cuda(REGISTRY.manifest("cuda")), nest_of("rows")
    built = cuda.build(cuda.emit(nest, H200), nest, H200, tmp_path)
    found = []
    for seed in (1, 2):
        for sizes in ({"M": 3, "K": 5}, {"M": 4, "K": 40}):
            inputs = random_inputs(work_of("rows").spec, sizes, np.random.default_rng(seed))
            found.append(cuda.run(built, nest, H200, sizes, inputs)["y"].shape)
    assert found == [(3, 5), (4, 40)] * 2
    assert len(made) == 1


def test_another_nest_and_another_machine_are_lowered_anew():
    cuda = Cuda(REGISTRY.manifest("cuda"))
    cases = [(name, machine) for name in ("rows", "recurrent") for machine in (H200, A100)]
    for _ in range(2):
        for name, machine in cases:
            nest = nest_of(name, machine.name)
            assert cuda.emit(nest, machine) == emitted(name, machine.name)
