"""A small problem for tests: a matmul with scaled columns, on a fictitious chip."""

from __future__ import annotations

from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_spec
from ir.print import spec_text
from machines.tiles.tiles import TILES
from search.core.settings import Settings

SPEC = parse_spec(
    '''def scaled_matmul(a: f32[M, K], b: f32[K, N], g: f32[N]) -> f32[M, N]:
    """Multiply, then scale the columns."""
    acc[m, n] = sum(a[m, k] * b[k, n], k)
    y[m, n] = acc[m, n] * g[n]
    return y
'''
)
CHIP = Machine(
    name="chip",
    title="A chip",
    backends=("tongue",),
    levels={"grid": 4},
    spaces={"global": Space(1 << 30, 1e9), "local": Space(1 << 16)},
    units={"matrix": Unit({"f32": 1e12}, (8, 8, 8)), "vector": Unit({"f32": 1e9})},
    model=TILES,
)
SIZES = {"M": 64, "N": 32, "K": 48}
SETTINGS = Settings(
    "scaled_matmul",
    spec_text(SPEC),
    "chip",
    ("tongue",),
    SIZES,
    evaluations=40,
    seed=1,
    roofline_share=2.0,
)
