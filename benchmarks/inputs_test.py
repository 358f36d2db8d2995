"""Tests that inputs drawn with torch are valid for their specs."""

from __future__ import annotations

import pytest
import torch

from benchmarks.inputs import TORCH, draw, input_bytes, outputs, poisoned
from ir.reference.reference import evaluate
from testing.samples.samples import KERNELS, workload


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_are_valid_and_the_same_for_a_seed(kernel):
    known = workload(kernel)
    for sizes in known.checks:
        first, again = (draw(known.spec, sizes, "cpu", 3) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
        assert [t.dtype for t in first] == [TORCH[t.dtype] for t in known.spec.inputs]
        assert sum(t.nbytes for t in first) == input_bytes(known.spec, sizes)
        arrays = [t.float().numpy() if t.is_floating_point() else t.numpy() for t in first]
        named = dict(zip((t.name for t in known.spec.inputs), arrays, strict=True))
        for array in evaluate(known.spec, named, sizes).values():
            assert array.dtype.kind != "f" or abs(array).max() < 1e6


def test_seeds_differ():
    spec, sizes = workload("softmax").spec, {"M": 4, "K": 8}
    assert not torch.equal(draw(spec, sizes, "cpu", 0)[0], draw(spec, sizes, "cpu", 1)[0])


def test_half_of_what_is_searched_is_among_the_borders():
    ids, keys = draw(workload("map_id").spec, {"U": 500, "B": 4000}, "cpu", 0)
    assert torch.equal(keys, keys.unique())
    assert 0.5 < torch.isin(ids, keys).float().mean() < 0.75


def test_outputs_are_poisoned():
    (floats,) = outputs(workload("softmax").spec, {"M": 2, "K": 3}, "cpu")
    (integers,) = outputs(workload("map_id").spec, {"U": 2, "B": 3}, "cpu")
    assert floats.isnan().all() and floats.shape == (2, 3)
    assert (integers < -1_000_000).all()
    assert poisoned("tf32", (3,), "cpu").isnan().all()
    assert poisoned("b8", (3,), "cpu").all()
