"""Convolutions and their gradients equal PyTorch's in float64."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@st.composite
def convolutions(draw, transposed, most=3):
    """Arguments of `convolution`."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    rank = draw(st.integers(1, most))
    largest = {1: 4, 2: 3, 3: 2}[rank]

    def each(low, high):
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    kernel, stride, dilation = each(1, largest), each(1, 3), each(1, 2)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padding = each(0, 2)
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    channels, made = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    if transposed:
        sizes = [max(n, 1 + p) for n, p in zip(each(1, 3), padding, strict=True)]
        sizes = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
        extra = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
        weight = doubles(channels, made // groups, *kernel)
    else:
        sizes = [
            max(n, span - 2 * p) for n, span, p in zip(each(1, 5), spans, padding, strict=True)
        ]
        extra = [0] * rank
        weight = doubles(made, channels // groups, *kernel)
    x = doubles(draw(st.integers(1, 2)), channels, *sizes)
    bias = doubles(made) if draw(st.booleans()) else None
    return x, weight, bias, stride, padding, dilation, transposed, extra, groups


@given(convolutions(False))
def test_convolution(case):
    agree(ATEN.convolution.default, *case)


@given(convolutions(True))
def test_transposed_convolution(case):
    agree(ATEN.convolution.default, *case)


@given(st.booleans().flatmap(lambda t: convolutions(t, 2)), st.tuples(*[st.booleans()] * 3))
def test_gradients(case, mask):
    x, weight, bias, *how = case
    grad = torch.randn_like(ATEN.convolution.default(*case))
    mask = [*mask[:2], mask[2] or not any(mask[:2])]
    sizes = [grad.shape[1]]
    agree(ATEN.convolution_backward.default, grad, x, weight, sizes, *how, mask)


def test_one_number_stands_for_all_dimensions():
    agree(
        ATEN.convolution.default,
        doubles(1, 2, 5, 6),
        doubles(3, 2, 3, 3),
        None,
        [2],
        [1],
        [1],
        False,
        [0],
        1,
    )


def test_bf16_is_summed_as_f32():
    x, w = (doubles(*s).bfloat16() for s in ((2, 8, 6), (4, 8, 3)))
    agree(ATEN.convolution.default, x, w, None, [1], [1], [1], False, [0], 1, rtol=0.05, atol=0.1)
