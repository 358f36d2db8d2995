"""Batch norm equals PyTorch's in float64: results, running statistics and gradients."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
MOMENTUM, EPS = 0.1, 1e-5


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@st.composite
def batches(draw):
    torch.manual_seed(draw(st.integers(0, 2**31)))
    n, c = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    x = doubles(n, c, *draw(st.lists(st.integers(1, 3), max_size=3)))
    affine = (doubles(c), doubles(c)) if draw(st.booleans()) else (None, None)
    return x, *affine, doubles(c), doubles(c).abs() + 0.1


@given(batches(), st.booleans())
def test_batch_norm(case, training):
    x, weight, bias, mean, var = case
    how = (MOMENTUM, EPS)
    agree(ATEN._native_batch_norm_legit_functional.default, *case, training, *how)
    agree(ATEN._native_batch_norm_legit_no_training.default, *case, *how)
    agree(ATEN._native_batch_norm_legit.no_stats, x, weight, bias, True, *how)
    agree(ATEN.native_batch_norm.default, x, weight, bias, None, None, True, *how)
    agree(ATEN.native_batch_norm.default, *case, False, *how)


@given(batches(), st.booleans(), st.tuples(*[st.booleans()] * 3))
def test_gradients(case, training, mask):
    x, weight, bias, mean, var = case
    mask = [True, mask[1] and weight is not None, mask[2] and bias is not None]
    _, kept, rstd = ATEN.native_batch_norm(
        x, weight, bias, mean.clone(), var.clone(), training, MOMENTUM, EPS
    )
    kept, rstd = (kept, rstd) if training else (None, None)
    agree(
        ATEN.native_batch_norm_backward.default,
        torch.randn_like(x),
        x,
        weight,
        mean,
        var,
        kept,
        rstd,
        training,
        EPS,
        mask,
        rtol=1e-6,
        atol=1e-7,
    )
