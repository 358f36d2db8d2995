"""A program passes tensors as they are where a backend takes them, else arrays."""

from types import SimpleNamespace

import numpy as np
import torch

from backends.backend import Built
from backends.program.launcher import launcher, place
from backends.registry import target
from ir.autoschedule.autoschedule import autoschedule
from ir.lower.lower import lower
from ir.parse.parse import parse_spec

SPEC = parse_spec(
    '''def doubled(x: f32[24]) -> f32[24]:
    """Double."""
    y[m] = x[m] * 2.0
    return y
'''
)
CHIP = target("null")
NEST = lower(SPEC, autoschedule(SPEC, CHIP, {}), CHIP, {})
BUILT = Built(None)


def ran(*arguments):
    """A run on arrays."""
    return {"y": 2 * arguments[-1]["x"]}


def enqueued(built, nest, machine, sizes):
    assert (built, nest, machine, sizes) == (BUILT, NEST, CHIP, {})
    return lambda x, y: torch.mul(x, 2, out=y)


def no_run(*arguments):
    raise AssertionError("tensors are passed as they are")


def doubled(backend):
    """What a program's launch of the kernel gives, and where its tensors lie."""
    made = launcher(backend, BUILT, NEST, CHIP)
    x, y = torch.arange(24.0), torch.zeros(24)
    made.launch(x, y)
    assert [t.role for t in made.tensors] == ["input", "output"]
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy())
    return place(backend, CHIP)


def test_a_backend_of_the_contract_alone_takes_arrays():
    assert doubled(SimpleNamespace(run=ran)) == "cpu"


def test_builds_that_are_enqueued_take_tensors_where_the_device_is():
    here = SimpleNamespace(run=no_run, enqueued=enqueued, place=lambda machine: "cuda")
    assert doubled(here) == "cuda"


def test_elsewhere_they_take_arrays():
    gone = SimpleNamespace(run=ran, enqueued=no_run, place=lambda machine: "cpu")
    assert doubled(gone) == "cpu"


def test_sources_that_take_tensors_are_launched_by_their_file():
    def by_file(file, tensors, machine):
        assert file is BUILT.file and machine is CHIP
        return lambda x, y: torch.mul(x, 2, out=y)

    source = SimpleNamespace(
        run=no_run, launcher=by_file, enqueued=no_run, place=lambda machine: "cpu"
    )
    assert doubled(source) == "cpu"
