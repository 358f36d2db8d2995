"""A time is taken from a check's simulation, if that is exactly the same simulation."""

import numpy as np
import pytest

from backends.backend import Built
from backends.registry import backend_for, target
from backends.sim.remembered import KEPT, Remembered, Run, inputs_digest
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec
from ir.reference.inputs import random_inputs

SPEC = parse_spec(
    '''def scale(x: f32[N]) -> f32[N]:
    """Twice each."""
    y[n] = x[n] * 2.0
    return y
'''
)
SIZES = {"N": 300}
CHIP = target("npu")


@pytest.fixture
def kernel(tmp_path):
    backend = backend_for(CHIP)
    nest = lower(SPEC, autoschedule(SPEC, CHIP, SIZES), CHIP, SIZES)
    return backend, backend.build(backend.emit(nest, CHIP), nest, CHIP, tmp_path), nest


def drawn(seed):
    return random_inputs(SPEC, SIZES, np.random.default_rng(seed))


def counted(backend, monkeypatch):
    made = []
    simulate = type(backend)._simulate

    def counting(self, stage, *given, **more):
        made.append(stage)
        return simulate(self, stage, *given, **more)

    monkeypatch.setattr(type(backend), "_simulate", counting)
    return made


def test_a_checked_run_is_not_simulated_again_for_its_time(kernel, monkeypatch):
    backend, built, nest = kernel
    alone = backend.time(built, nest, CHIP, SIZES, drawn(1))
    made = counted(backend, monkeypatch)
    backend.run(built, nest, CHIP, SIZES, drawn(2))
    backend.run(built, nest, CHIP, SIZES, drawn(3))
    assert backend.time(built, nest, CHIP, SIZES, drawn(2)) == alone
    assert made == ["check", "check"]


def test_other_inputs_sizes_or_builds_are_simulated(kernel, monkeypatch):
    backend, built, nest = kernel
    backend.run(built, nest, CHIP, SIZES, drawn(2))
    made = counted(backend, monkeypatch)
    backend.time(built, nest, CHIP, SIZES, drawn(4))
    again = Built(built.file, built.figures)
    backend.time(again, nest, CHIP, SIZES, drawn(2))
    smaller = {"N": 7}
    given = random_inputs(SPEC, smaller, np.random.default_rng(2))
    backend.time(built, nest, CHIP, smaller, given)
    assert made == ["time"] * 3


def test_the_oldest_is_forgotten(tmp_path):
    kept = Remembered()
    runs = [Run(Built(tmp_path), CHIP, {"N": n}, "") for n in range(KEPT + 1)]
    for n, run in enumerate(runs):
        kept.add(run, {"n": n})
    assert kept.find(runs[0]) is None
    assert kept.find(runs[1]) == {"n": 1}


def test_a_digest_is_of_names_forms_and_values():
    a = np.zeros((2, 3), np.float32)
    one = inputs_digest({"x": a}, ("x",))
    others = ({"y": a}, {"x": a.reshape(3, 2)}, {"x": a.astype(np.int32)}, {"x": a + 1})
    assert one == inputs_digest({"x": a.copy()}, ("x",))
    assert all(one != inputs_digest(o, tuple(o)) for o in others)
