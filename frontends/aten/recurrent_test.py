"""Recurrent networks equal PyTorch's modules in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frontends.aten.against import agree, results

ATEN = torch.ops.aten
NETS = {
    "lstm": (torch.nn.LSTM, {}),
    "gru": (torch.nn.GRU, {}),
    "rnn_tanh": (torch.nn.RNN, {}),
    "rnn_relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
}


def arguments(kind, steps, rows, given_, size, layers, bias, both, batch_first, **more):
    """Of an operator, from the module that calls it."""
    made, how = NETS[kind]
    module = made(
        given_,
        size,
        layers,
        bias=bias,
        bidirectional=both,
        batch_first=batch_first,
        dtype=torch.float64,
        **how,
        **more,
    )
    x = torch.randn(*((rows, steps) if batch_first else (steps, rows)), given_).double()
    start = torch.randn(2, layers * (2 if both else 1), rows, size, dtype=torch.float64)
    hx = list(start) if kind == "lstm" else start[0]
    params = [p.detach() for p in module._flat_weights]
    return module, x, hx, params


@given(
    st.sampled_from(list(NETS)),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_recurrent_networks(kind, steps, rows, given_, size, layers, bias, both, batch_first):
    module, x, hx, params = arguments(
        kind, steps, rows, given_, size, layers, bias, both, batch_first
    )
    operator = getattr(ATEN, kind).input
    how = (bias, layers, 0.0, True, both, batch_first)
    agree(operator, x, hx, params, *how)
    theirs, _ = module(x, tuple(hx) if kind == "lstm" else hx)
    torch.testing.assert_close(operator(x, hx, params, *how)[0], theirs)


@pytest.mark.parametrize("kind", ["gru", "rnn_tanh"])
def test_dropout_is_of_what_goes_from_layer_to_layer_in_training(kind):
    _, x, hx, params = arguments(kind, 3, 2, 3, 4, 2, True, False, False)
    operator = getattr(ATEN, kind).input
    agree(operator, x, hx, params, True, 2, 0.5, False, False, False)
    one = (True, 1, 0.0, False, False, False)
    below, _ = operator(x, hx[:1], params[:4], *one)
    _, (dropped, mask) = results(ATEN.native_dropout.default, below, 0.5, True, seed=3)
    assert 0 < mask.mean() < 1
    expected, last = operator(torch.from_numpy(dropped), hx[1:], params[4:], *one)
    _, (found, ends) = results(operator, x, hx, params, True, 2, 0.5, True, False, False, seed=3)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(ends[1:], last, rtol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
def test_projected_states(layers, both, bias):
    module, x, (hidden, cell), params = arguments(
        "lstm", 3, 2, 3, 5, layers, bias, both, True, proj_size=2
    )
    hx = [hidden[..., :2].contiguous(), cell]
    how = (bias, layers, 0.0, False, both, True)
    agree(ATEN.lstm.input, x, hx, params, *how)
    theirs, _ = module(x, tuple(hx))
    torch.testing.assert_close(ATEN.lstm.input(x, hx, params, *how)[0], theirs)
