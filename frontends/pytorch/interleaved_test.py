"""A dimension of a transposed convolution: how many products, and where they read."""

from math import ceil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree
from frontends.aten.interleaved import way
from frontends.pytorch.module import imported
from ir.affine import affine
from ir.contraction import contraction
from ir.sizes import value
from ir.spec import Apply, Number


def sums(spec):
    return [e for e in spec.equations if contraction(e) is not None]


def of(stride, padding=0, dilation=1, groups=1, rank=2, kernel=4, extra=0):
    torch.manual_seed(0)
    kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[rank - 1]
    module = kind(
        2 * groups,
        3 * groups,
        kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        output_padding=extra,
    )
    return imported(module, (torch.zeros(1, 2 * groups, *[5] * rank),)).spec


@pytest.mark.parametrize(("kernel", "stride", "taps"), [(4, 2, 2), (3, 2, 2), (2, 3, 1), (5, 1, 5)])
def test_taps_are_as_many_as_meet_a_result(kernel, stride, taps):
    assert way(Number(9), Number(kernel), stride, 1, 0).taps == taps


@given(st.integers(1, 7), st.integers(1, 5), st.integers(0, 6), st.integers(1, 12))
def test_every_product_is_met_once(kernel, stride, low, size):
    made = way(Number(size), Number(kernel), stride, 1, low)
    assert made.taps == max(1, ceil(kernel / stride))
    for p in range(size):
        u, phase = (value(e, {}) for e in made.found(Number(p)))
        assert u < value(made.count, {})
        at = [
            (u + j - made.low, value(made.weight(Number(phase), Number(j)), {}))
            for j in range(made.taps)
        ]
        inside = {(q, k) for q, k in at if 0 <= k < kernel}
        assert made.leaves or len(inside) == made.taps
        reached = [(p + low - k, k) for k in range(kernel)]
        assert inside == {(far // stride, k) for far, k in reached if far % stride == 0}


def test_phases_begin_with_the_first_result_where_that_takes_no_more_taps():
    assert way(Number(10), Number(3), 2, 1, 1).shift == 0
    assert way(Number(10), Number(4), 2, 1, 1).shift == 1


def test_nothing_is_put_between_elements():
    assert not [e for e in of(2).equations if "spaced" in e.target]
    assert len(sums(of(2))[0].value.over) == 3  # the channel, and two taps along each dimension


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_phases_are_channels_of_one_convolution_without_a_stride(rank, groups):
    (made,) = sums(of(2, groups=groups, rank=rank))[:1]
    sizes = [value(s, {}) for s in made.sizes]
    assert sizes[-rank:] == [6] * rank  # 12 results along each dimension
    assert sizes[-rank - 1] == 3 * 2**rank
    reads = {r.tensor: r for r in made.reads()}
    assert not [n for r in reads.values() for p in r.at for n in p.walk() if _divides(n)]


def _divides(node):
    return isinstance(node, Apply) and node.function in ("floordiv", "mod")


def test_where_it_cannot_be_there_are_zeros():
    assert [e for e in of(stride=2, dilation=2).equations if "spaced" in e.target]


def test_windows_of_a_convolution_without_a_stride_run_forwards():
    (made,) = sums(of(1))
    steps = [affine(p) for r in made.reads() for p in r.at]
    assert all(by > 0 for one in steps for i, by in one.terms if i in made.reduced)


@pytest.mark.parametrize("groups", [1, 2])
def test_three_dimensions(groups):
    x, w = (torch.randn(*s, dtype=torch.float64) for s in ((1, 2, 2, 3, 2), (2, 2, 3, 2, 3)))
    agree(
        torch.ops.aten.convolution.default,
        x,
        w,
        None,
        [2, 2, 3],
        [1, 0, 1],
        [1, 1, 1],
        True,
        [1, 0, 1],
        groups,
    )
