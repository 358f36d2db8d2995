"""Modules that hold tensors under given paths, where the module that they are of is not there."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn


def held_module(state: Mapping[str, torch.Tensor], training: bool) -> nn.Module:
    """A module whose parameters and buffers are the tensors of `state`, by path.

    training: its mode, and that of its submodules.
    """
    root = nn.Module()
    for path, tensor in state.items():
        *parents, name = path.split(".")
        part = root
        for parent in parents:
            if parent not in part._modules:
                part.add_module(parent, nn.Module())
            part = part.get_submodule(parent)
        if isinstance(tensor, nn.Parameter):
            part.register_parameter(name, tensor)
        else:
            part.register_buffer(name, tensor)
    return root.train(training)
