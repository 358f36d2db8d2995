"""Diagonals and triangles equal PyTorch's."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import numbered

ATEN = torch.ops.aten
SHAPES = st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple)
DTYPES = st.sampled_from((torch.float64, torch.float16, torch.int64, torch.bool))
MANY = settings(max_examples=40, deadline=None)


@MANY
@given(SHAPES, DTYPES, st.data())
def test_diagonals(shape, dtype, data):
    x = numbered(shape, dtype)
    one, other, *_ = data.draw(st.permutations(range(len(shape))))
    one -= len(shape) * data.draw(st.integers(0, 1))
    offset = data.draw(st.integers(1 - shape[one], shape[other] - 1))
    agree(ATEN.diagonal.default, x, offset, one, other)
    part = x.diagonal(offset, one, other)
    agree(ATEN.diagonal_backward.default, part, shape, offset, one, other)
    agree(ATEN.diagonal_scatter.default, x, 100 * part, offset, one, other)
    agree(ATEN.diag_embed.default, part, offset, *(d % x.dim() for d in (one, other)))
    agree(ATEN.linalg_diagonal.default, x, offset=offset, dim1=one, dim2=other)


@MANY
@given(st.integers(1, 4), st.integers(1, 4), st.integers(-3, 3))
def test_matrices_of_vectors_and_vectors_of_matrices(rows, columns, offset):
    agree(ATEN.diag.default, numbered((rows,)), offset)
    if -rows < offset < columns:
        agree(ATEN.diag.default, numbered((rows, columns)), offset)


@MANY
@given(SHAPES, DTYPES, st.integers(-4, 4))
def test_triangles(shape, dtype, diagonal):
    agree(ATEN.tril.default, numbered(shape, dtype), diagonal)
    agree(ATEN.triu.default, numbered(shape, dtype), diagonal)
