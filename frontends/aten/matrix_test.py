"""Diagonals, triangles and products equal PyTorch's in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.table import require
from ir.errors import KernelError

ATEN = torch.ops.aten
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(1, 3), max_size=3)
SIZES = st.integers(1, 5)


@given(SIZES, SIZES, st.integers(-4, 4), SEEDS)
def test_diagonals_and_triangles(rows, columns, offset, seed):
    torch.manual_seed(seed)
    x = torch.randn(rows, columns, dtype=torch.float64)
    agree(ATEN.trace.default, x)
    agree(ATEN.trace.default, (x * 4).int())
    for operator in (ATEN.tril_indices.default, ATEN.triu_indices.default):
        if operator(rows, columns, offset).numel():
            agree(operator, rows, columns, offset)


@given(SHAPES, st.integers(0, 3), SEEDS)
def test_products_of_vectors(shape, dim, seed):
    torch.manual_seed(seed)
    dim %= len(shape) + 1
    shape = [*shape[:dim], 3, *shape[dim:]]
    x, y = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    agree(ATEN.linalg_cross.default, x, y, dim=dim - len(shape))
    agree(ATEN.linalg_cross.default, x, y[:1] if dim else y, dim=dim)
    agree(ATEN.cross.default, x, y)


def test_numbers_are_not_read_into_the_program():
    with pytest.raises(KernelError, match="read into the program"):
        require("_local_scalar_dense")(None, None, None)
