"""Attention in PyTorch's spellings: one kernel each, and what PyTorch gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from frontends.pytorch.module import imported
from ir.partition.partition import partition
from ir.reference.stepwise import evaluate
from ir.sizes import shape

SIZES = {"prefill": (7, 7), "cross": (5, 11), "decode": (1, 13)}


def fused(q, k, v, mask=None, **options):
    return F.scaled_dot_product_attention(q, k, v, mask, **options)


def scores(q, k, v, mask=None):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return torch.softmax(s if mask is None else s + mask, -1) @ v


def in_f32(q, k, v):
    s = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1])
    return torch.matmul(F.softmax(s, -1, dtype=torch.float32).to(q.dtype), v)


def summed(q, k, v):
    s = torch.einsum("bhmd,bhnd->bhmn", q, k) * 0.3
    return torch.einsum("bhmn,bhnd->bhmd", s.softmax(-1), v)


def filled(q, k, v):
    after = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    s = (q @ k.transpose(-1, -2)).masked_fill(after, -math.inf)
    return s.softmax(-1) @ v


def windowed(q, k, v):
    m, n = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])[None]
    return fused(q, k, v, (n <= m) & (n > m - 3))


def biased(q, k, v):
    return fused(q, k, v, torch.linspace(-1, 1, k.shape[-2]).to(q.dtype).expand(q.shape[-2], -1))


def repeated(q, k, v):
    n = q.shape[1] // k.shape[1]
    return fused(q, k.repeat_interleave(n, 1), v.repeat_interleave(n, 1))


def expanded(x, n):
    b, g, length, width = x.shape
    return x[:, :, None].expand(b, g, n, length, width).reshape(b, g * n, length, width)


def spread(q, k, v):
    n = q.shape[1] // k.shape[1]
    return scores(q, expanded(k, n), expanded(v, n))


def grouped(q, k, v):
    return fused(q, k, v, enable_gqa=True)


def by_groups(q, k, v):
    b, h, m, d = q.shape
    q = q.reshape(b, k.shape[1], -1, m, d)
    s = torch.einsum("bgrmd,bgnd->bgrmn", q, k) * 0.1
    return torch.einsum("bgrmn,bgnd->bgrmd", s.softmax(-1), v).reshape(b, h, m, d)


def by_windows(q, k, v):
    s = q @ k.transpose(-1, -2)
    shift = torch.linspace(-2, 2, s.shape[-1]).to(s.dtype).expand(2, 1, s.shape[-2], -1)
    s = s.view(-1, 2, *s.shape[1:]) + shift
    return torch.softmax(s.view(-1, *s.shape[2:]), -1) @ v


CASES = [
    *((f, 6, size) for f in (fused, scores, in_f32, summed) for size in ("cross", "decode")),
    *((f, 6, "prefill") for f in (filled, windowed, biased, by_windows)),
    *((f, 2, size) for f in (repeated, spread, grouped, by_groups) for size in SIZES),
    (grouped, 1, "decode"),
]


@pytest.mark.parametrize(("function", "groups", "size"), CASES)
def test_attention_is_one_kernel(function, groups, size):
    length, keys = SIZES[size]
    torch.manual_seed(len(size))
    q = torch.randn(2, 6, length, 4).double()
    k, v = torch.randn(2, 2, groups, keys, 4).double()
    # Traced in f32, whose casts to f32 the reference does in float64.
    made = imported(function, [x.float() for x in (q, k, v)])
    network = partition(made.spec, {}, made.aliases, takes=lambda _: 1.0)
    (step,) = network.steps
    assert set(step.inputs) == {*"qkv"}  # read in place, and no mask that follows from positions
    (found,) = evaluate(network, {n: x.numpy() for n, x in zip("qkv", (q, k, v), strict=True)})
    np.testing.assert_allclose(found, function(q, k, v).numpy(), rtol=1e-6, atol=1e-7)


def test_queries_keys_and_values_of_one_tensor_are_read_in_place():
    def packed(x):
        b, length, width = x.shape
        parts = (p.view(b, length, 2, -1).transpose(1, 2) for p in x.split(width // 3, 2))
        return fused(*parts).transpose(1, 2).reshape(b, length, -1)

    x = torch.randn(2, 5, 24).double()
    made = imported(packed, [x.float()])
    network = partition(made.spec, {}, made.aliases, takes=lambda _: 1.0)
    (step,) = network.steps
    assert step.inputs == ("x",)
    assert shape(step.spec.inputs[0], {}) == (
        2,
        5,
        3,
        2,
        4,
    )  # each is a part of the third dimension
    (found,) = evaluate(network, {"x": x.numpy()})
    np.testing.assert_allclose(found, packed(x).numpy(), rtol=1e-6, atol=1e-7)
