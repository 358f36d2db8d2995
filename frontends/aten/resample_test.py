"""Resampled images equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
PAIRS = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 16)), min_size=1, max_size=3)
SEEDS = st.integers(0, 2**31)


def image(sizes, seed):
    torch.manual_seed(seed)
    return torch.randn(1, 2, *sizes, dtype=torch.float64)


@given(PAIRS, SEEDS)
def test_nearest(pairs, seed):
    x, made = image([s for s, _ in pairs], seed), [m for _, m in pairs]
    for name in ("upsample_nearest", "_upsample_nearest_exact"):
        operator = getattr(ATEN, f"{name}{len(pairs)}d")
        agree(operator.default, x, made)
        agree(operator.vec, x, made, None)


@given(PAIRS, SEEDS, st.sampled_from([0.5, 1.3, 2.0, 2.5, 3.0]))
def test_nearest_by_a_factor(pairs, seed, factor):
    x = image([s + 1 for s, _ in pairs], seed)
    for name in ("upsample_nearest", "_upsample_nearest_exact"):
        agree(getattr(ATEN, f"{name}{len(pairs)}d").vec, x, None, [factor] * len(pairs))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("size", "factor"), [(2, 1.3), (3, 1.3), (4, 2.2), (1, 2.9)])
def test_factors_that_keep_or_double_a_size_count_as_such_in_two_dimensions_alone(
    count, size, factor
):
    agree(
        getattr(ATEN, f"upsample_nearest{count}d").vec,
        image([size] * count, 1),
        None,
        [factor] * count,
    )


@given(PAIRS, SEEDS, st.booleans())
def test_linear(pairs, seed, aligned):
    x, made = image([s for s, _ in pairs], seed), [m for _, m in pairs]
    names = ["upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"]
    operator = getattr(ATEN, names[len(pairs) - 1])
    agree(operator.default, x, made, aligned)
    agree(operator.vec, image([s + 1 for s, _ in pairs], seed), None, aligned, [1.5] * len(pairs))


@given(PAIRS.map(lambda pairs: (pairs * 2)[:2]), SEEDS, st.booleans())
def test_cubic(pairs, seed, aligned):
    x, made = image([s for s, _ in pairs], seed), [m for _, m in pairs]
    agree(ATEN.upsample_bicubic2d.default, x, made, aligned)


@given(PAIRS.map(lambda pairs: (pairs * 2)[:2]), SEEDS, st.booleans())
def test_antialiased(pairs, seed, aligned):
    """PyTorch itself gives rows that are all alike where the result has one column."""
    x, made = image([s for s, _ in pairs], seed), [m + 1 for _, m in pairs]
    agree(ATEN._upsample_bicubic2d_aa.default, x, made, aligned)
    agree(ATEN._upsample_bilinear2d_aa.default, x, made, aligned)
