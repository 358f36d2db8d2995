"""The gamma function's logarithm and its derivative equal PyTorch's in float64."""

import math

import numpy as np
import pytest
import torch

from frontends.aten.against import agree, results
from frontends.aten.gamma import _LOG_GAMMA

ATEN = torch.ops.aten
OPERATORS = [ATEN.lgamma.default, ATEN.digamma.default]
SPECIAL = [0.0, -1.0, -7.0, math.inf, -math.inf, math.nan, 1.0, 2.0, 8.5, 1e30, 1e-200]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_of_all_magnitudes(operator):
    positive = torch.logspace(-8, 8, 400, dtype=torch.float64)
    agree(operator, positive, rtol=1e-13, atol=1e-14)
    agree(operator, torch.linspace(0.01, 12, 997, dtype=torch.float64), rtol=1e-13, atol=2e-15)
    agree(operator, -torch.linspace(0.01, 30, 991, dtype=torch.float64), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_of_poles_infinities_and_integers(operator):
    agree(operator, torch.tensor(SPECIAL, dtype=torch.float64))
    agree(operator, torch.arange(-3, 20))
    agree(operator, torch.linspace(-4, 20, 50).bfloat16())


def test_the_series_is_exact_where_it_is_used():
    ends = np.array([-0.5, 0.5])
    found = np.polynomial.polynomial.polyval(ends, _LOG_GAMMA)
    np.testing.assert_allclose(found, [math.lgamma(1.5), math.lgamma(2.5)], rtol=4e-15)


def test_near_its_zeros_the_logarithm_keeps_its_digits():
    x = 1 + torch.tensor([1e-10, -1e-10, 1 + 1e-10, 1 - 1e-10], dtype=torch.float64)
    ((theirs,), (ours,)) = results(ATEN.lgamma.default, x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
