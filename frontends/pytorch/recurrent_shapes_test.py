"""Recurrent networks have PyTorch's own shapes without their steps, and only while it is asked."""

import pytest
import torch

from frontends.pytorch.module import imported
from frontends.pytorch.recurrent_shapes import NETWORKS, recurrent_shapes
from frontends.pytorch.trace import fake_mode


def shapes(name, **options):
    rows, steps, layers, width = 3, 5, 2, 7
    sides = 2 if options["bidirectional"] else 1
    with fake_mode():
        made = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(name, torch.nn.RNN)
        kind = {"nonlinearity": name[4:]} if name.startswith("rnn") else {}
        net = made(4, width, layers, **kind, **options)
        x = torch.zeros(*((rows, steps) if options["batch_first"] else (steps, rows)), 4)
        start = torch.zeros(layers * sides, rows, width)
        result, ends = net(x, (start, start) if name == "lstm" else start)
    ends = ends if isinstance(ends, tuple) else (ends,)
    return [(t.shape, t.stride(), t.dtype) for t in (result, *ends)]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_shapes_are_those_of_the_steps(name, bidirectional, batch_first):
    options = {"bidirectional": bidirectional, "batch_first": batch_first}
    expected = shapes(name, **options)
    with recurrent_shapes():
        assert shapes(name, **options) == expected
    assert shapes(name, **options) == expected


def test_values_are_pytorchs_afterwards():
    net, x = torch.nn.GRU(4, 7), torch.randn(5, 3, 4)
    before = net(x)[0]
    with recurrent_shapes():
        pass
    assert torch.equal(net(x)[0], before)


def test_long_sequences_take_as_many_calls_as_short_ones(calls):
    def exported(steps):
        with fake_mode():
            net, x = torch.nn.LSTM(4, 7, 3), torch.zeros(steps, 2, 4)
        assert imported(net, (x,)).spec.outputs[0].shape[0].value == steps

    exported(3)  # now all is kept that is
    assert calls(lambda: exported(4000)) < 1.5 * calls(lambda: exported(3))
