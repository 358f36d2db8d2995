"""Contractions equal PyTorch's in float64 and in integers."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
SIZE = st.integers(1, 5)
DTYPES = st.sampled_from([torch.float64, torch.int64])
FACTOR = st.sampled_from([1, 0, 2, -3])


@st.composite
def makers(draw):
    """Makes tensors of a dtype."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    dtype = draw(DTYPES)
    return lambda *shape: (torch.randn(*shape, dtype=torch.float64) * 4).to(dtype)


@given(makers(), SIZE, SIZE, SIZE, SIZE)
def test_matrix_products(made, g, m, n, k):
    agree(ATEN.mm.default, made(m, k), made(k, n))
    agree(ATEN.bmm.default, made(g, m, k), made(g, k, n))
    agree(ATEN.mv.default, made(m, k), made(k))
    agree(ATEN.dot.default, made(k), made(k))
    agree(ATEN.vdot.default, made(k), made(k))
    agree(ATEN.outer.default, made(m), made(n))
    agree(ATEN.tensordot.default, made(m, g, k, n), made(n, k, m, g), [1, -2], [3, 1])


@given(makers(), SIZE, SIZE, SIZE, SIZE, FACTOR, FACTOR, st.booleans())
def test_matrix_products_are_added(made, g, m, n, k, beta, alpha, one):
    how = {"beta": beta, "alpha": alpha}
    agree(ATEN.addmm.default, made(1 if one else m, n), made(m, k), made(k, n), **how)
    agree(ATEN.addmm.default, made(n), made(m, k), made(k, n), **how)
    agree(ATEN.addmv.default, made(m), made(m, k), made(k), **how)
    agree(ATEN.addbmm.default, made(m, n), made(g, m, k), made(g, k, n), **how)
    agree(ATEN.baddbmm.default, made(g, 1, n), made(g, m, k), made(g, k, n), **how)
    agree(ATEN.addr.default, made(m, n), made(m), made(n), **how)


@given(makers(), st.lists(st.tuples(SIZE, st.sampled_from("abc")), max_size=3), SIZE, SIZE, SIZE)
def test_batches_of_matrices_are_broadcast(made, batch, m, n, k):
    left = [1 if how == "a" else size for size, how in batch]
    right = [1 if how == "b" else size for size, how in batch]
    agree(ATEN.matmul.default, made(*left, m, k), made(*right, k, n))
    agree(ATEN.matmul.default, made(*left[1:], m, k), made(*right, k, n))
    agree(ATEN.matmul.default, made(k), made(*right, k, n))
    agree(ATEN.matmul.default, made(*left, m, k), made(k))


@given(makers(), st.lists(SIZE, max_size=2), SIZE, SIZE)
def test_linear(made, batch, n, k):
    x = made(*batch, k).double()
    agree(ATEN.linear.default, x, made(n, k).double(), made(n).double())
    agree(ATEN.linear.default, x, made(n, k).double())


def test_narrow_floats_are_summed_as_f32():
    x, y = torch.randn(4, 300, dtype=torch.bfloat16), torch.randn(300, 5, dtype=torch.bfloat16)
    agree(ATEN.mm.default, x, y)
    agree(ATEN.addmm.default, torch.randn(5, dtype=torch.bfloat16), x, y, rtol=0.1, atol=0.1)


def test_matrices_of_8_bit_integers():
    x = torch.arange(20 * 16).reshape(20, 16).sub(160).clamp(-128, 127).to(torch.int8)
    agree(ATEN._int_mm.default, x, x.T.contiguous()[:, :8])
    wide = torch.randn(3, 16, dtype=torch.bfloat16)
    agree(ATEN._weight_int8pack_mm.default, wide, x, torch.rand(20, dtype=torch.bfloat16))


@given(makers(), SIZE, SIZE, SIZE, SIZE)
def test_products_of_three_tensors(made, m, n, o, k):
    x, y, z = made(m, k).double(), made(m, n).double(), made(o, k, n).double()
    agree(ATEN._trilinear.default, x, z, y, [1, 3], [0], [1, 2], [2, 3])
    agree(ATEN._trilinear.default, x, z, y, [1, 3], [0], [1, 2], [3])
