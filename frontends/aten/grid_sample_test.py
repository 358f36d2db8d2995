"""Samples at places of a grid equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
SIZES = st.tuples(*[st.integers(1, 6)] * 4)
SEEDS = st.integers(0, 2**31)


def drawn(shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("mode", range(3))
@pytest.mark.parametrize("padding", range(3))
@settings(max_examples=15)
@given(SIZES, SEEDS, st.booleans())
def test_images(mode, padding, sizes, seed, aligned):
    height, width, *places = sizes
    x, grid = drawn((2, 3, height, width), seed), drawn((2, *places, 2), seed + 1)
    agree(ATEN.grid_sampler_2d.default, x, grid, mode, padding, aligned)


@pytest.mark.parametrize("mode", range(2))
@pytest.mark.parametrize("padding", range(3))
@settings(max_examples=15)
@given(SIZES, SEEDS, st.booleans())
def test_volumes(mode, padding, sizes, seed, aligned):
    depth, height, width, place = sizes
    x, grid = drawn((2, 2, depth, height, width), seed), drawn((2, place, 2, 1, 3), seed + 1)
    agree(ATEN.grid_sampler_3d.default, x, grid, mode, padding, aligned)


def test_places_far_outside():
    x = drawn((1, 1, 3, 4), 1)
    grid = torch.tensor([[[[1e30, 0.0], [-1e30, 0.5], [3.0, -7.0]]]], dtype=torch.float64)
    for padding in range(2):
        agree(ATEN.grid_sampler_2d.default, x, grid, 0, padding, False)
