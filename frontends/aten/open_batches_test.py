"""Rules that reduce, slide windows or take steps hold where batches and lengths are open."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._pytree import tree_map

from frontends.aten.apply import apply
from frontends.builder import Builder, Meta
from frontends.expressions import expr
from ir.reference.reference import evaluate
from ir.spec import Size
from ir.verify import facts

ATEN = torch.ops.aten
B, T = Size("B"), Size("T")


class X:
    """A tensor among the arguments of a call, by its shape."""

    def __init__(self, *shape):
        self.shape = shape


CALLS = (  # arguments, and the shapes of the results
    (ATEN.mean.dim, [X(B, T, 4), [0, 1]], [(4,)]),
    (ATEN.var.correction, [X(B, T), [0]], [(T,)]),
    (ATEN._softmax.default, [X(B, T), -1, False], [(B, T)]),
    (ATEN.logcumsumexp.default, [X(B, T), 1], [(B, T)]),
    (
        ATEN.native_layer_norm.default,
        [X(B, T, 4), [4], None, None, 1e-5],
        [(B, T, 4), (B, T, 1), (B, T, 1)],
    ),
    (
        ATEN._native_batch_norm_legit.no_stats,
        [X(B, 4, T), None, None, True, 0.1, 1e-5],
        [(B, 4, T), (4,), (4,)],
    ),
    (ATEN.mm.default, [X(B, T), X(T, 4)], [(B, 4)]),
    (
        ATEN.convolution.default,
        [X(B, 4, 6, 7), X(8, 2, 3, 3), None, [2, 2], [1, 1], [1, 1], False, [0, 0], 2],
        [(B, 8, 3, 4)],
    ),
    (
        ATEN.convolution.default,
        [X(B, 4, 6, 7), X(4, 2, 3, 3), None, [2, 2], [1, 1], [1, 1], True, [0, 0], 2],
        [(B, 4, 11, 13)],
    ),
    (
        ATEN.convolution.default,
        [X(B, 4, T), X(8, 4, 3), None, [1], [1], [1], False, [0], 1],
        [(B, 8, T)],
    ),
    (ATEN.max_pool2d_with_indices.default, [X(B, 4, 6, 7), [2, 2]], [(B, 4, 3, 3)] * 2),
    (ATEN._adaptive_avg_pool2d.default, [X(B, 4, 6, 7), [2, 3]], [(B, 4, 2, 3)]),
    (ATEN.upsample_bilinear2d.default, [X(B, 2, 3, 4), [5, 6], False], [(B, 2, 5, 6)]),
    (
        ATEN.scaled_dot_product_attention.default,
        [*[X(B, 2, T, 4)] * 3, None, 0.0, True],
        [(B, 2, T, 4)],
    ),
    (
        ATEN.gru.input,
        [X(T, B, 3), X(2, B, 4), [X(12, 3), X(12, 4)] * 2, False, 1, 0.0, False, True, False],
        [(T, B, 8), (2, B, 4)],
    ),
    (ATEN.mse_loss.default, [X(B, T), X(B, T)], [()]),
)


@pytest.mark.parametrize("call", CALLS, ids=[str(c[0]) + str(n) for n, c in enumerate(CALLS)])
@settings(max_examples=3, deadline=None)
@given(sizes=st.fixed_dictionaries({"B": st.integers(2, 4), "T": st.integers(1, 5)}))
def test_results_at_the_sizes_that_are_given(call, sizes):
    operator, arguments, shapes = call
    b, held, seen = Builder(), {}, set()

    def known(item):
        size = [sizes[n.name] if isinstance(n, Size) else n for n in item.shape]
        return torch.randn(size, dtype=torch.float64)

    def placed(item, tensor):
        if not isinstance(item, X):
            return item
        value = b.input("x", "f64", tuple(map(expr, item.shape)))
        held[value.name] = tensor.numpy()
        seen.update(n.name for n in item.shape if isinstance(n, Size))
        return value

    tensors = tree_map(lambda item: known(item) if isinstance(item, X) else item, arguments)
    values = tree_map(placed, arguments, tensors)
    theirs = operator(*tensors)
    theirs = (theirs,) if isinstance(theirs, torch.Tensor) else theirs
    out = [
        Meta("i64" if t.dtype == torch.int64 else "f64", tuple(map(expr, s)))
        for t, s in zip(theirs, shapes, strict=True)
    ]
    made = apply(b, operator, values, {}, tuple(out))
    spec = b.spec("f", made)
    facts(spec)
    given_ = {n: sizes[n] for n in seen}
    found = evaluate(spec, {t.name: held[t.name] for t in spec.inputs}, given_)
    for value, expected in zip(made, theirs, strict=True):
        np.testing.assert_allclose(found[value.name], expected.numpy(), rtol=1e-9, atol=1e-11)
