"""Losses equal PyTorch's in float64, as do their gradients."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree

ATEN = torch.ops.aten
REDUCTIONS = st.integers(0, 2)
SHAPES = st.lists(st.integers(1, 4), max_size=3)
SEEDS = st.integers(0, 2**31)


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@given(SHAPES, REDUCTIONS, SEEDS, st.sampled_from([0.3, 1.0, 2.0]))
def test_differences(shape, reduction, seed, border):
    torch.manual_seed(seed)
    x, y = doubles(shape), doubles(shape)
    for operator in (ATEN.mse_loss, ATEN.l1_loss, ATEN.soft_margin_loss):
        agree(operator.default, x, y, reduction)
    agree(ATEN.mse_loss.default, x, doubles(shape[1:]), reduction)
    agree(ATEN.smooth_l1_loss.default, x, y, reduction, border)
    agree(ATEN.smooth_l1_loss.default, x, y, reduction, 0.0)
    agree(ATEN.huber_loss.default, x, y, reduction, border)
    agree(ATEN.kl_div.default, x, y.abs() * (y > -1), reduction)
    agree(ATEN.kl_div.default, x, y, reduction, log_target=True)
    grad = doubles(shape if reduction == 0 else [])
    agree(ATEN.mse_loss_backward.default, grad, x, y, reduction)


@given(SHAPES, REDUCTIONS, SEEDS, st.sampled_from([0.0, 0.5]))
def test_margins(shape, reduction, seed, margin):
    torch.manual_seed(seed)
    x, y = doubles(shape), doubles(shape)
    sign = torch.where(doubles(shape) < 0, -1.0, 1.0).double()
    agree(ATEN.hinge_embedding_loss.default, x, sign, margin, reduction)
    agree(ATEN.margin_ranking_loss.default, x, y, sign, margin, reduction)


@given(SHAPES, REDUCTIONS, SEEDS, st.booleans())
def test_binary_cross_entropy(shape, reduction, seed, weighted):
    torch.manual_seed(seed)
    x, y = torch.rand(shape, dtype=torch.float64).round(decimals=1), torch.rand(shape).double()
    weight = doubles(shape[1:]) if weighted else None
    agree(ATEN.binary_cross_entropy.default, x, y, weight, reduction)
    operator = ATEN.binary_cross_entropy_with_logits.default
    agree(operator, doubles(shape) * 30, y, weight, None, reduction)
    agree(operator, doubles(shape), y, None, doubles(shape[-1:]).abs(), reduction)


@st.composite
def classes(draw, places=2):
    """Scores, targets of which some are ignored, weights or none."""
    torch.manual_seed(draw(SEEDS))
    count, rest = draw(st.integers(2, 5)), draw(st.lists(st.integers(1, 3), max_size=places))
    shape = [draw(st.integers(1, 4)), *rest]
    ignored = draw(st.sampled_from([-100, 1]))
    target = torch.randint(0, count, shape)
    target[torch.rand(shape) < 0.3] = ignored
    target.view(-1)[0] = 0
    weight = doubles(count).abs() if draw(st.booleans()) else None
    return doubles(shape[0], count, *rest), target, weight, draw(REDUCTIONS), ignored


@given(classes())
def test_cross_entropy(case):
    x, target, weight, reduction, ignored = case
    agree(ATEN.cross_entropy_loss.default, *case)
    agree(ATEN.cross_entropy_loss.default, *case, 0.2)
    agree(ATEN.nll_loss_nd.default, *case)
    likely = torch.softmax(doubles(*x.shape), 1)
    agree(ATEN.cross_entropy_loss.default, x, likely, weight, reduction, -100, 0.1)
    agree(ATEN.cross_entropy_loss.default, x, likely, weight, reduction)
    agree(ATEN.cross_entropy_loss.default, doubles(4), torch.tensor(2), None, reduction)


@given(st.one_of(classes(0), classes(2).filter(lambda case: case[0].ndim == 4)))
def test_likelihoods_and_their_gradients(case):
    x, target, weight, reduction, ignored = case
    name = "nll_loss2d" if x.ndim == 4 else "nll_loss"
    forward, back = getattr(ATEN, f"{name}_forward"), getattr(ATEN, f"{name}_backward")
    agree(forward.default, *case)
    loss, total = forward(*case)
    agree(back.default, torch.randn_like(loss), *case, total)


def test_a_single_likelihood():
    x, target = doubles(5), torch.tensor(3)
    for reduction in (0, 1, 2):
        case = (x, target, None, reduction, -100)
        agree(ATEN.nll_loss_forward.default, *case)
        loss, total = ATEN.nll_loss_forward(*case)
        agree(ATEN.nll_loss_backward.default, doubles([]), *case, total)


def test_the_mean_of_nothing_is_no_number():
    x, target = doubles(2, 3), torch.tensor([-100, -100])
    loss, _ = ATEN.nll_loss_forward(x, target, None, 1, -100)
    assert math.isnan(loss)
    agree(ATEN.nll_loss_forward.default, x, target, None, 1, -100)
