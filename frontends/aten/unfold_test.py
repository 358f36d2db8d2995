"""Windows as columns, and columns as images, equal PyTorch's in float64."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(list)


@given(
    PAIR,
    PAIR,
    st.tuples(st.integers(0, 2), st.integers(0, 2)).map(list),
    PAIR,
    PAIR,
    st.booleans(),
    st.integers(0, 2**31),
)
def test_columns(kernel, dilation, padding, stride, more, batched, seed):
    torch.manual_seed(seed)
    spans = [(k - 1) * d + n for k, d, n in zip(kernel, dilation, more, strict=True)]
    sizes = [max(s - 2 * p, 1) for s, p in zip(spans, padding, strict=True)]
    x = torch.randn(*([2, 3] if batched else [3]), *sizes, dtype=torch.float64)
    how = (kernel, dilation, padding, stride)
    agree(ATEN.im2col.default, x, *how)
    columns = torch.randn_like(ATEN.im2col(x, *how))
    agree(ATEN.col2im.default, columns, sizes, *how)
