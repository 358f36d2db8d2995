"""Shapes of recurrent networks, known without their steps.

PyTorch finds out what `lstm`, `gru`, `rnn_tanh` and `rnn_relu` return by running all steps on fake
tensors, which takes minutes for long sequences. While a graph is traced in which they stay whole,
they return empty tensors of the same shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import decomposition_table

NETWORKS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


@contextmanager
def recurrent_shapes() -> Iterator[None]:
    """Runs what is within with recurrent networks of fake tensors that have shapes only. Tensors
    with values must not meet them here."""
    operators = {getattr(torch.ops.aten, name).input: name for name in NETWORKS}
    before = {o: (dict(o.py_kernels), decomposition_table[o]) for o in operators}
    for operator, name in operators.items():
        made = _lstm if name == "lstm" else _of_one_state
        operator.py_kernels.update(dict.fromkeys(_KEYS, made))
        decomposition_table[operator] = made
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, (kernels, decomposition) in before.items():
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            decomposition_table[operator] = decomposition
            operator._dispatch_cache.clear()


def _lstm(
    input: torch.Tensor,
    hx: Sequence[torch.Tensor],
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    output = _output(input, hx[0], bidirectional, batch_first)
    return output, *(torch.empty_like(h, memory_format=torch.contiguous_format) for h in hx)


def _of_one_state(
    input: torch.Tensor,
    hx: torch.Tensor,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    output = _output(input, hx, bidirectional, batch_first)
    return output, torch.empty_like(hx, memory_format=torch.contiguous_format)


def _output(
    input: torch.Tensor, state: torch.Tensor, bidirectional: bool, batch_first: bool
) -> torch.Tensor:
    """The last layer's states of all steps [T, B, H], or seen as [B, T, H]."""
    first, second = input.shape[:2]
    width = state.shape[2] * (2 if bidirectional else 1)
    if batch_first:
        return input.new_empty(second, first, width).transpose(0, 1)
    return input.new_empty(first, second, width)
