"""Rules whose positions depend on sizes hold where a size is open."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.apply import apply
from frontends.aten.arguments import numbered
from frontends.builder import Builder, Meta
from frontends.expressions import expr
from ir.reference.reference import evaluate
from ir.spec import Size
from ir.verify import facts

ATEN = torch.ops.aten
N = Size("N")
CALLS = (  # the arguments after the tensor, and the shape of the result, of N by 4
    (ATEN.flip.default, [[0, 1]], (N, 4)),
    (ATEN.roll.default, [[1, -1], [0, 1]], (N, 4)),
    (ATEN.permute.default, [[1, 0]], (4, N)),
    (ATEN.slice.Tensor, [0, 1], (N - 1, 4)),
    (ATEN.slice.Tensor, [0, -2], (2, 4)),
    (ATEN.select.int, [0, -1], (4,)),
    (ATEN.view.default, [[-1]], (N * 4,)),
    (ATEN.unsqueeze.default, [1], (N, 1, 4)),
    (ATEN.repeat.default, [[2, 3]], (N * 2, 12)),
    (ATEN.constant_pad_nd.default, [[1, 0, 2, 1]], (N + 3, 5)),
    (ATEN.pad.default, [[1, 1], "reflect"], (N, 6)),
    (ATEN.pad.default, [[1, 2], "replicate"], (N, 7)),
    (ATEN.tril.default, [], (N, 4)),
    (ATEN.silu.default, [], (N, 4)),
    (ATEN.zeros_like.default, [], (N, 4)),
    (ATEN.unfold.default, [0, 2, 1], (N - 1, 4, 2)),
    (ATEN.repeat_interleave.self_int, [2, 0], (N * 2, 4)),
    (ATEN.select_scatter.default, [torch.ones(4).double(), 0, -1], (N, 4)),
)


@pytest.mark.parametrize("call", CALLS, ids=[str(c[0]) + str(n) for n, c in enumerate(CALLS)])
@settings(max_examples=5, deadline=None)
@given(n=st.integers(3, 6))
def test_positions_at_the_size_that_is_given(call, n):
    operator, arguments, shape = call
    b, x = Builder(), numbered((n, 4))
    held = {"x": x.numpy()}
    value = b.input("x", "f64", (N, 4))
    given = []
    for item in arguments:
        if isinstance(item, torch.Tensor):
            held["y"], item = item.numpy(), b.input("y", "f64", tuple(item.shape))
        given.append(item)
    (made,) = apply(b, operator, (value, *given), {}, (Meta("f64", tuple(map(expr, shape))),))
    spec = b.spec("f", [made])
    facts(spec)
    found = evaluate(spec, {t.name: held[t.name] for t in spec.inputs}, {"N": n})
    np.testing.assert_allclose(found[made.name], operator(x, *arguments).numpy(), rtol=1e-9)
