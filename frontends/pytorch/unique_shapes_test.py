"""Sizes of groups stand where PyTorch puts them once it computes."""

import pytest
import torch

from frontends.pytorch.module import imported
from frontends.pytorch.reference import answer


@pytest.mark.parametrize(("shape", "dim"), [((6,), -1), ((4, 3), -1), ((4, 3), -2), ((4, 3), 1)])
def test_groups_along_a_dimension_counted_from_the_last(shape, dim):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape) // 5 * 1.0

    def groups(x):
        return torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim)

    found = answer(imported(groups, (x,)), groups, (x,)).result
    for ours, theirs in zip(found, groups(x), strict=True):
        assert torch.equal(ours.to(theirs.dtype), theirs)
