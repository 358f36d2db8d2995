"""Padding equals PyTorch's."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.arguments import numbered
from frontends.aten.padding import pad
from frontends.builder import Builder
from ir.errors import KernelError

ATEN = torch.ops.aten
MANY = settings(max_examples=40, deadline=None)
KINDS = st.sampled_from((torch.float64, torch.float16, torch.int64, torch.bool))


@MANY
@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), KINDS, st.data())
def test_constants_around(shape, dtype, data):
    count = data.draw(st.integers(0, len(shape)))
    around = data.draw(st.lists(st.integers(-1, 3), min_size=2 * count, max_size=2 * count))
    fits = all(n + a + b > 0 for n, a, b in zip(reversed(shape), around[::2], around[1::2]))
    around = around if fits else [abs(n) for n in around]
    x = numbered(tuple(shape), dtype)
    agree(ATEN.constant_pad_nd.default, x, around)
    agree(ATEN.constant_pad_nd.default, x, around, True)
    agree(ATEN.pad.default, x, around)
    if dtype.is_floating_point:
        agree(ATEN.constant_pad_nd.default, x, around, -math.inf)
        agree(ATEN.pad.default, x, around, "constant", 2.5)


@MANY
@given(st.integers(1, 3), st.data())
def test_elements_around(dims, data):
    shape = tuple(data.draw(st.integers(2, 5)) for _ in range(dims + 2))
    x = numbered(shape)
    near = [data.draw(st.integers(0, n - 1)) for n in reversed(shape[2:]) for _ in range(2)]
    far = [data.draw(st.integers(0, 6)) for _ in near]
    whole = [data.draw(st.integers(0, n)) for n in reversed(shape[2:]) for _ in range(2)]
    agree(getattr(ATEN, f"reflection_pad{dims}d").default, x, near)
    agree(getattr(ATEN, f"replication_pad{dims}d").default, x, far)
    agree(getattr(ATEN, f"replication_pad{dims}d").default, x[0], far)
    agree(ATEN.pad.default, x, near, "reflect")
    agree(ATEN.pad.default, x, far, "replicate")
    agree(ATEN.pad.default, x, whole, "circular")
    agree(ATEN.pad.default, x, [1, -1, *near[2:]], "reflect")


def test_a_mode_that_is_none_is_refused():
    b = Builder()
    x = b.input("x", "f32", (3, 3))
    with pytest.raises(KernelError, match="mode 'odd'"):
        pad(b, x.meta, x, [1, 1], "odd")
