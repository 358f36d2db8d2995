"""A matmul with an epilogue, as one kernel or two."""

from __future__ import annotations

from backends.compiled import Kernels, networks
from ir.network import Network
from ir.parse.parse import parse_spec
from ir.partition.choices import Choices

SPEC = parse_spec(
    'def f(x: f32[96, 64], w: f32[64, 80], b: f32[80]) -> f32[96, 80]:\n    """F."""\n'
    "    t[m, n] = sum(x[m, k] * w[k, n], k)\n    y[m, n] = relu(t[m, n] + b[n])\n    return y\n"
)


def of_spec(kernels: Kernels, choices: Choices) -> tuple[Network, Network | None]:
    """Its network; nothing is computed before calls."""
    return networks(SPEC, {}, {}, kernels, choices=choices)
