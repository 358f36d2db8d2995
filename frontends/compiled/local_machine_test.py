"""Modules as programs of the machine that the tests run on, called in this process."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from frontends.compiled.module import compile_module


class ResidualBlock(nn.Module):
    """Two convolutions with normalisation, and the input added."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(x + self.norms[1](self.second(inner)))


class Inception(nn.Module):
    """Parallel convolutions, and the input."""

    def __init__(self, channels: int, *widths: int):
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Conv2d(channels, width, 2 * n + 1, padding=n) for n, width in enumerate(widths)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches] + [x], 1)


MODULES = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 9)),
        (5, 24),
    ),
    "bert_layer": (
        lambda: nn.TransformerEncoderLayer(
            32, 4, 48, dropout=0.0, activation="gelu", batch_first=True
        ),
        (2, 7, 32),
    ),
    "resnet_block": (lambda: ResidualBlock(6), (2, 6, 9, 9)),
    "inception": (lambda: Inception(6, 4, 5, 3), (2, 6, 8, 6)),
    "inception_unaligned": (lambda: Inception(5, 3, 5), (3, 5, 7, 9)),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_runs_on_the_local_machine(name):
    torch.manual_seed(3)
    make, shape = MODULES[name]
    module, x = make().eval().requires_grad_(False), torch.randn(shape)
    run = compile_module(module, (x,), target="cpu")
    for given in (x, torch.randn(shape)):
        torch.testing.assert_close(run(given), module(given), rtol=1e-4, atol=1e-5)


def test_kernels_write_running_statistics_over_those_of_the_module():
    torch.manual_seed(3)
    module = ResidualBlock(6).requires_grad_(False)
    theirs, x = copy.deepcopy(module), torch.randn(2, 6, 9, 9)
    run = compile_module(module, (x,), target="cpu")
    names = {"running_mean", "running_var", "num_batches_tracked"}
    assert run.call.left_in_place == {f"norms.{n}.{name}" for n in (0, 1) for name in names}
    for given in (x, torch.randn(2, 6, 9, 9), x):
        torch.testing.assert_close(run(given), theirs(given), rtol=1e-4, atol=1e-5)
    for name, tensor in theirs.named_buffers():
        torch.testing.assert_close(module.get_buffer(name), tensor, rtol=1e-5, atol=1e-6)
