"""Attention equals PyTorch's in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree, results
from ir.errors import KernelError

ATEN = torch.ops.aten
SIZE = st.integers(1, 5)
MASKS = st.sampled_from([None, "bool", "float", "one row", "nothing"])


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def mask_of(kind, b, h, m, n):
    if kind == "bool":
        return torch.rand(b, 1, m, n) < 0.7
    if kind == "float":
        return doubles(m, n)
    if kind == "one row":
        return doubles(b, h, 1, n)
    if kind == "nothing":
        return torch.full((m, n), -math.inf, dtype=torch.float64)
    return None


@given(SIZE, SIZE, SIZE, SIZE, SIZE, MASKS, st.booleans(), st.sampled_from([None, 0.3]))
def test_attention(h, m, n, d, e, kind, causal, scale):
    b = 2
    q, k, v = doubles(b, h, m, d), doubles(b, h, n, d), doubles(b, h, n, e)
    mask = None if causal else mask_of(kind, b, h, m, n)
    agree(ATEN.scaled_dot_product_attention.default, q, k, v, mask, 0.0, causal, scale=scale)
    if kind != "bool":  # the private operator is given what is added
        how = {"is_causal": causal, "scale": scale}
        agree(ATEN._scaled_dot_product_attention_math.default, q, k, v, mask, **how)
    agree(ATEN.scaled_dot_product_attention.default, q[0, 0], k[0, 0], v[0, 0])


@given(SIZE, SIZE, SIZE, SIZE, st.booleans())
def test_attention_as_the_cpu_exports_it(h, m, n, d, causal):
    q, k, v = doubles(2, h, m, d), doubles(2, h, n, d), doubles(2, h, n, d)
    operator = ATEN._scaled_dot_product_flash_attention_for_cpu.default
    agree(operator, q, k, v, 0.0, causal, atol=1e-5)
    agree(operator, q, k, v, attn_mask=None if causal else doubles(m, n), scale=0.4, atol=1e-5)


@given(st.integers(1, 3), st.integers(1, 3), SIZE, SIZE)
def test_heads_of_keys_serve_groups_of_queries(heads, ratio, m, n):
    q, k, v = doubles(2, heads * ratio, m, 3), doubles(2, heads, n, 3), doubles(2, heads, n, 4)
    agree(ATEN.scaled_dot_product_attention.default, q, k, v, enable_gqa=True)


@settings(max_examples=20)
@given(st.integers(0, 99), st.floats(0.1, 0.9), st.booleans())
def test_dropout_leaves_out_weights_and_scales_the_others(seed, p, causal):
    q, k, v = doubles(2, 3, 20, 4), doubles(2, 3, 20, 4), doubles(2, 3, 20, 5)
    math_ = ATEN._scaled_dot_product_attention_math.default
    _, (found, weights) = results(math_, q, k, v, None, p, causal, seed=seed)
    _, (_, whole) = results(math_, q, k, v, None, 0.0, causal)
    kept = weights != 0
    np.testing.assert_allclose(weights[kept], whole[kept] / (1 - p), rtol=1e-9)
    np.testing.assert_allclose(found, weights @ v.numpy(), rtol=1e-9, atol=1e-12)
    assert abs(kept[whole != 0].mean() - (1 - p)) < 0.1
    _, (alone,) = results(
        ATEN.scaled_dot_product_attention.default, q, k, v, None, p, causal, seed=seed
    )
    np.testing.assert_allclose(alone, found, rtol=1e-9, atol=1e-12)


def test_a_mask_of_what_to_drop_is_refused():
    q = doubles(1, 1, 2, 3)
    with pytest.raises(KernelError, match="told which weights to drop"):
        results(
            ATEN._scaled_dot_product_attention_math.default,
            q,
            q,
            q,
            None,
            0.5,
            False,
            torch.ones(1, 1, 2, 2, dtype=torch.bool),
        )
