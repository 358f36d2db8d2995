"""A dimension of a transposed convolution: how many products, and where they read."""

import pytest
import torch

from frontends.aten.against import agree
from frontends.aten.interleaved import way
from frontends.pytorch.module import imported
from ir.spec import Number


def sums(spec):
    return [e for e in spec.equations if e.target.startswith("convolution")]


def of(stride, padding=0, dilation=1, groups=1, rank=2):
    torch.manual_seed(0)
    kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[rank - 1]
    module = kind(
        2 * groups, 3 * groups, 4, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    return imported(module, (torch.zeros(1, 2 * groups, *[5] * rank),)).spec


@pytest.mark.parametrize(("kernel", "stride", "taps"), [(4, 2, 2), (3, 2, 2), (2, 3, 1), (5, 1, 5)])
def test_taps_are_as_many_as_meet_a_result(kernel, stride, taps):
    assert way(Number(9), Number(kernel), stride, 1, 0).taps == taps


def test_nothing_is_put_between_elements():
    assert not [e for e in of(2).equations if "spaced" in e.target]
    assert len(sums(of(2))[0].value.over) == 3  # the channel, and two taps along each dimension


@pytest.mark.parametrize("how", [dict(stride=2, dilation=2), dict(stride=2, groups=2, rank=3)])
def test_where_it_cannot_be_there_are_zeros(how):
    spec = of(**how)
    assert [e for e in spec.equations if "spaced" in e.target]
    (made,) = sums(spec)[:1]
    assert len(made.indices) + len(made.value.over) <= 12


def test_results_that_begin_at_the_first_are_not_copied():
    assert not [e for e in of(2).equations if e.target == "cropped"]
    assert [e for e in of(2, padding=1).equations if e.target == "cropped"]


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
