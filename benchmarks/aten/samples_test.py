"""Tests that every operator of the list has samples, small ones first, without duplicates."""

import pytest
import torch

from benchmarks.aten.makers import MAKERS
from benchmarks.aten.samples import EXTREMA, LARGEST, NAMES, SMALL, calls, dtypes


@pytest.mark.parametrize("name", NAMES)
def test_each_operator_has_samples_that_pytorch_computes(name):
    kinds = dtypes(name)
    assert kinds
    found = calls(name, kinds[0], 2)
    assert found and len({c.text() for c in found}) == len(found)
    for call in found:
        assert sum(t.numel() for t in call.tensors) <= LARGEST
        call(torch.float64)


def test_makers_are_of_operators_of_the_list():
    assert set(MAKERS) <= set(NAMES)


def test_scalars_come_last_and_variants_in_turn():
    sizes = [max(t.numel() for t in c.tensors) for c in calls("add", torch.float32, 8)]
    assert sizes[0] >= SMALL
    modes = [c.kwargs.get("rounding_mode") for c in calls("div", torch.float32, 3)]
    assert modes == [None, "trunc", "floor"]


@pytest.mark.parametrize("name", EXTREMA)
def test_extrema_are_taken_of_nan_and_infinities_too(name):
    plain, special = calls(name, torch.float32, 2)
    assert not plain.tensors[0].isnan().any() and special.tensors[0].isnan().any()
    assert plain.tensors[0].shape == special.tensors[0].shape
    assert not any(c.tensors[0].is_floating_point() for c in calls(name, torch.int64, 2))


def test_integer_operators_are_tried_with_integers_and_bool():
    assert dtypes("bitwise_or") == [torch.int64, torch.bool]
    assert dtypes("add") == [torch.float32, torch.bfloat16, torch.int64]
