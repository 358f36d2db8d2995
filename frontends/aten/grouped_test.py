"""Grouped matmuls equal PyTorch's, and the same products of each group in float64."""

import numpy as np
import pytest
import torch

from frontends.aten.against import agree, meta_of
from frontends.aten.grouped import grouped_mm_fallback
from frontends.builder import Builder
from ir.reference.reference import evaluate

ATEN = torch.ops.aten


def numbers(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.manual_seed(1), dtype=torch.float64).to(dtype)


def ends(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize(
    ("left", "right", "grouped"),
    [((12, 16), (4, 16, 8), True), ((4, 8, 16), (16, 16), True)]
    + [((8, 16), (16, 24), True), ((3, 8, 16), (3, 16, 8), False)],
    ids=["rows", "columns", "terms", "batches"],
)
def test_groups_of(left, right, grouped):
    x, y = numbers(*left, dtype=torch.bfloat16), numbers(*right, dtype=torch.bfloat16)
    last = {2: left[0] if len(right) == 3 else left[1], 3: right[-1]}[len(left)]
    offs = ends(2, 2, 7, last) if grouped else None
    agree(ATEN._grouped_mm.default, x, y, offs)


def test_rows_of_no_group_are_zeros():
    x, w = numbers(7, 3), numbers(3, 3, 2)
    offs = ends(2, 2, 5)
    b = Builder()
    given = [b.input("x", m.dtype, m.shape) for m in map(meta_of, (x, w, offs))]
    made = grouped_mm_fallback(b, meta_of(numbers(7, 2)), *given)
    spec = b.spec("f", [made])
    held = dict(zip((v.name for v in given), (x.numpy(), w.numpy(), offs.numpy()), strict=True))
    found = evaluate(spec, {t.name: held[t.name] for t in spec.inputs}, {})[made.name]
    expected = torch.cat([x[:2] @ w[0], x[2:5] @ w[2], torch.zeros(2, 2)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
