"""Norms equal PyTorch's in float64, as do their gradients."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
EPS = 1e-5


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@st.composite
def shapes(draw, least=1, most=4):
    torch.manual_seed(draw(st.integers(0, 2**31)))
    return draw(st.lists(st.integers(1, 4), min_size=least, max_size=most))


@given(shapes(), st.integers(1, 3), st.booleans(), st.booleans())
def test_layer_norm_and_its_gradients(shape, count, weighted, biased):
    inner = shape[-count:]
    x, grad = doubles(shape), doubles(shape)
    weight = doubles(inner) if weighted else None
    bias = doubles(inner) if weighted and biased else None
    agree(ATEN.native_layer_norm.default, x, inner, weight, bias, EPS)
    _, mean, rstd = ATEN.native_layer_norm(x, inner, weight, bias, EPS)
    mask = [True, weighted, bias is not None]
    agree(
        ATEN.native_layer_norm_backward.default,
        grad,
        x,
        inner,
        mean,
        rstd,
        weight,
        bias,
        mask,
        rtol=1e-6,
        atol=1e-8,
    )


@given(shapes(), st.integers(1, 3), st.booleans(), st.sampled_from([None, 1e-6]))
def test_rms_norm(shape, count, weighted, eps):
    inner = shape[-count:]
    x, weight = doubles(shape), doubles(inner) if weighted else None
    agree(ATEN.rms_norm.default, x, inner, weight, eps)
    agree(ATEN._fused_rms_norm.default, x, inner, weight, eps)


@given(shapes(least=0, most=2), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_group_norm_and_its_gradients(rest, group, per, weighted):
    n, c = 2, group * per
    x, grad = doubles(n, c, *rest), doubles(n, c, *rest)
    weight, bias = (doubles(c), doubles(c)) if weighted else (None, None)
    size = x[0, 0].numel()
    agree(ATEN.native_group_norm.default, x, weight, bias, n, c, size, group, EPS)
    _, mean, rstd = ATEN.native_group_norm(x, weight, bias, n, c, size, group, EPS)
    mask = [True, weighted, weighted]
    agree(
        ATEN.native_group_norm_backward.default,
        grad,
        x,
        mean,
        rstd,
        weight,
        n,
        c,
        size,
        group,
        mask,
        rtol=1e-6,
        atol=1e-8,
    )


@given(shapes(least=2, most=4), st.booleans())
def test_weight_norm_and_its_gradients(shape, last):
    dim = len(shape) - 1 if last else 0
    v, kept = doubles(shape), [s if d == dim else 1 for d, s in enumerate(shape)]
    g = doubles(kept)
    agree(ATEN._weight_norm_interface.default, v, g, dim)
    w, norms = ATEN._weight_norm_interface(v, g, dim)
    agree(
        ATEN._weight_norm_interface_backward.default,
        torch.randn_like(w),
        v,
        g,
        norms,
        dim,
        rtol=1e-6,
        atol=1e-8,
    )


@given(shapes(least=0, most=3), st.integers(0, 2))
def test_softmax_and_its_gradients(shape, dim):
    x, grad = doubles(shape) * 50, doubles(shape)
    dim = dim % max(len(shape), 1)
    agree(ATEN._softmax.default, x, dim, False)
    agree(ATEN._log_softmax.default, x, dim, False)
    agree(ATEN.softmax.int, x, dim - max(len(shape), 1))
    agree(ATEN.log_softmax.int, x, dim, torch.float64)
    for operator, back in (
        (ATEN._softmax, ATEN._softmax_backward_data),
        (ATEN._log_softmax, ATEN._log_softmax_backward_data),
    ):
        agree(back.default, grad, operator(x, dim, False), dim, torch.float64)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_softmax_of_nan_and_infinities(value):
    x = torch.tensor([[value, value, value], [1.0, value, 2.0]], dtype=torch.float64)
    for operator in (ATEN._softmax, ATEN._log_softmax):
        agree(operator.default, x, 1, False)


def test_a_softmax_of_nothing_but_minus_infinity_is_safe():
    x = doubles(3, 4)
    x[1] = float("-inf")
    x[2, 1] = float("-inf")
    agree(ATEN._safe_softmax.default, x, -1)
