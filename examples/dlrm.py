"""A small recommendation model (DLRM, arXiv 1906.00091), imported, compiled, and run on a target.

    python3 -m examples.dlrm --target=NAME

prints its kernels and how far the results are from PyTorch's in float64.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from backends.compiled import compiled
from backends.registry import backend_for, target
from frontends.pytorch.bound import Bound
from frontends.pytorch.call import state_of
from frontends.pytorch.module import imported
from ir.errors import KernelError

BATCH, DENSE, TABLES, ROWS, WIDTH, BAG = 8, 13, 4, 50, 16, 3


class Dlrm(nn.Module):
    """Embedding bags and a perceptron, the products of all pairs of their vectors, and another
    perceptron: dense f32[B, 13], indices i64[tables, B, bag] -> f32[B, 1] in (0, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES))
        self.bottom = nn.Sequential(
            nn.Linear(DENSE, 32), nn.ReLU(), nn.Linear(32, WIDTH), nn.ReLU()
        )
        vectors = TABLES + 1
        pairs = vectors * (vectors - 1) // 2
        self.top = nn.Sequential(
            nn.Linear(WIDTH + pairs, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()
        )
        below = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("pairs", below[0] * vectors + below[1])

    def forward(self, dense: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(dense)
        bags = [table(indices[n]) for n, table in enumerate(self.tables)]
        vectors = torch.stack([bottom, *bags], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([bottom, products[:, self.pairs]], dim=1))


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """A batch, drawn at random."""
    return torch.randn(BATCH, DENSE), torch.randint(ROWS, (TABLES, BATCH, BAG))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit code 2 for wrong use."""
    parser = argparse.ArgumentParser(prog="dlrm", description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    torch.manual_seed(asked.seed)
    module = Dlrm()
    try:
        machine = target(asked.target)
        backend = backend_for(machine)
        made = imported(module, inputs())
        with tempfile.TemporaryDirectory() as folder:
            run = compiled(made.spec, {}, made.aliases, machine, backend, Path(folder))
            for step in run.network.steps:
                print(f"{step.spec.name}: {', '.join(e.target for e in step.spec.equations)}")
            bound, given = Bound(made, state_of(made, module), run), inputs()
            found = bound(*given)
    except KernelError as error:
        print(f"dlrm: {error}", file=sys.stderr)
        return 2
    with torch.no_grad():
        dense, indices = given
        exact = copy.deepcopy(module).double()(dense.double(), indices)
        eager = module(dense, indices)
    counted = f"{len(run.network.steps)} steps, {len(run.kernels)} kernels"
    print(f"{counted} for {machine.name}, by {backend.available(machine)['correct_by']}")
    print(f"largest error against float64: {_error(found, exact):.1e}; PyTorch's own in f32: "
          f"{_error(eager, exact):.1e}")  # fmt: skip
    return 0


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).abs().max())


if __name__ == "__main__":
    sys.exit(main())
