"""Reductions equal PyTorch's in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import SEEDS, SHAPES, reals

ATEN = torch.ops.aten
INF = math.inf


@st.composite
def tensors(draw, dtypes=(torch.float64,), least=0):
    shape = draw(st.lists(st.integers(1, 4), min_size=least, max_size=3))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    dtype = draw(st.sampled_from(dtypes))
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -3, 4, shape, dtype=dtype)
    return torch.randn(shape, dtype=dtype)


@st.composite
def reductions(draw, dtypes=(torch.float64,)):
    """A tensor, some of its dimensions, and whether they are kept."""
    x = draw(tensors(dtypes))
    dims = draw(st.lists(st.integers(-x.ndim, x.ndim - 1), max_size=3)) if x.ndim else []
    unique = list({d % x.ndim: d for d in dims}.values())
    return x, unique, draw(st.booleans())


MANY = (torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8)


@given(reductions(MANY))
def test_sums_and_counts(case):
    x, dims, keepdim = case
    agree(ATEN.sum.default, x)
    agree(ATEN.sum.dim_IntList, x, dims, keepdim)
    agree(ATEN.sum.dim_IntList, x, dims, keepdim, dtype=torch.float64)
    agree(ATEN.count_nonzero.dim_IntList, x, dims)
    agree(ATEN.any.dims, x, dims or None, keepdim)
    agree(ATEN.all.default, x)
    agree(ATEN.mean.dim, x, dims, keepdim, dtype=torch.float64)
    agree(ATEN.prod.default, x)
    for d in dims[:1]:
        agree(ATEN.prod.dim_int, x, d, keepdim)
        agree(ATEN.any.dim, x, d, keepdim)
        agree(ATEN.all.dim, x, d, keepdim)


@given(reductions((torch.float64, torch.int64, torch.int32)))
def test_extrema_and_their_places(case):
    x, dims, keepdim = case
    for kind in ("max", "min"):
        agree(getattr(ATEN, f"a{kind}").default, x, dims, keepdim)
        agree(getattr(ATEN, kind).default, x)
        agree(getattr(ATEN, f"arg{kind}").default, x)
        for d in dims[:1]:
            agree(getattr(ATEN, kind).dim, x, d, keepdim)
            agree(getattr(ATEN, f"arg{kind}").default, x, d, keepdim)


@given(SHAPES, SEEDS, st.integers(0, 3), st.sampled_from((torch.float64, torch.bfloat16)))
def test_nan_is_the_largest_and_the_least(shape, seed, dim, dtype):
    x = reals(shape, seed, dtype, special=True)
    if x.ndim:
        x[0] = torch.where(torch.isnan(x[0]), 0.0, x[0])  # a row that may have infinities only
    dim %= max(x.ndim, 1)
    for kind in ("max", "min"):
        agree(getattr(ATEN, f"a{kind}").default, x, [dim] if x.ndim else [])
        agree(getattr(ATEN, kind).default, x)
        agree(getattr(ATEN, kind).dim, x, dim)
        agree(getattr(ATEN, f"arg{kind}").default, x)
        agree(getattr(ATEN, f"arg{kind}").default, x, dim)
    agree(ATEN.nansum.default, x, dim)


@pytest.mark.parametrize("value", [INF, -INF, math.nan])
def test_the_first_of_elements_that_are_all_infinite_or_nan(value):
    x = torch.full((2, 3), value, dtype=torch.float64)
    for operator in (ATEN.max.dim, ATEN.min.dim, ATEN.argmax.default, ATEN.argmin.default):
        agree(operator, x, 1)


@given(reductions(), st.sampled_from([0, 1, 2.0, 0.5]))
def test_variances(case, correction):
    x, dims, keepdim = case
    options = {"correction": correction, "keepdim": keepdim}
    agree(ATEN.var.correction, x, dims, **options)
    agree(ATEN.std.correction, x, dims, **options)
    agree(ATEN.var_mean.correction, x, dims, **options)
    agree(ATEN.std_mean.correction, x, dims, **options)
    agree(ATEN.var.dim, x, dims, False, keepdim)
    agree(ATEN.std.default, x)


@given(reductions(), st.sampled_from([0, 1, 2, 3, 0.5, -1.5, INF, -INF]))
def test_norms(case, order):
    x, dims, keepdim = case
    agree(ATEN.linalg_vector_norm.default, x, order, dims or None, keepdim)
    agree(ATEN.norm.ScalarOpt_dim, x, order, dims, keepdim)
    agree(ATEN.norm.Scalar, x)


@given(reductions())
def test_log_of_sums_of_exponentials(case):
    x, dims, keepdim = case
    agree(ATEN.logsumexp.default, x * 300, dims or list(range(x.ndim)), keepdim)


@pytest.mark.parametrize("value", [INF, -INF, math.nan])
def test_log_of_a_sum_of_infinities(value):
    for x in (torch.full([3], value), torch.tensor([0.0, value, 1.0])):
        agree(ATEN.logsumexp.default, x.double(), [0])


@given(tensors((torch.float64, torch.int64)), st.booleans())
def test_closeness(x, equal_nan):
    y = x + (1 if x.dtype == torch.int64 else 1e-6) * torch.randint(0, 2, x.shape)
    if x.is_floating_point() and x.ndim:
        x.flatten()[0] = y.flatten()[0] = math.nan if equal_nan else INF
    agree(ATEN.isclose.default, x, y, equal_nan=equal_nan)
    agree(ATEN.allclose.default, x, y, equal_nan=equal_nan)
    agree(ATEN.isclose.default, x, y, 0.5, 0.5)
    agree(ATEN.equal.default, x, y)
    agree(ATEN.equal.default, x, x)
    agree(ATEN.equal.default, x, torch.zeros(9, dtype=x.dtype))


@given(reductions((torch.float16, torch.bfloat16, torch.float32)))
def test_narrow_floats_are_rounded_once(case):
    x, dims, keepdim = case
    for operator in (ATEN.sum.dim_IntList, ATEN.mean.dim, ATEN.logsumexp.default):
        dims = dims or list(range(x.ndim))
        agree(operator, x, dims, keepdim, rtol=2e-2, atol=2e-2)
