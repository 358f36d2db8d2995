"""A small problem for tests: a product with scaled columns, on a chip that there is not, and an
operator for it."""

from __future__ import annotations

import random

from ir.edits.edits import neighbours
from ir.machine import Machine, Space, Unit
from ir.parse.parse import parse_spec
from ir.print import spec_text
from machines.tiles.tiles import TILES
from search.candidate import Candidate
from search.context import Context, GaveUp
from search.settings import Settings

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
    spaces={"global": Space(1 << 30, 1e9), "scratch": Space(1 << 16)},
    units={"matrix": Unit({"f32": 1e12}, (8, 8, 8)), "vector": Unit({"f32": 1e9})},
    model=TILES,
)
SIZES = {"M": 64, "N": 32, "K": 48}
SETTINGS = Settings(
    "scaled_matmul",
    spec_text(SPEC),
    "chip",
    "tongue",
    SIZES,
    evaluations=40,
    seed=1,
    roofline_share=2.0,
)


class Pick:
    """An operator that changes one decision at random."""

    name, parents, remote = "pick", 1, False

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """The first change of a random order that is new and lowers."""
        schedule = context.parents[0].schedule
        edits = neighbours(context.spec, schedule, context.machine, context.sizes)
        for edit in rng.sample(edits, len(edits)):
            child = context.offer(edit.apply(schedule), "pick", str(edit))
            if isinstance(child, Candidate):
                return child
        return GaveUp("nothing is left")
