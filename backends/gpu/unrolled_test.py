"""Short loops that divide their index are written out where a language asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.gpu.body import BodyBuilder
from backends.gpu.plain_rules import RULES
from backends.gpu.tile import Loop, Statement
from ir.parse.parse import parse_spec
from testing.samples.samples import WITH_TF32, lowered

SPEC = parse_spec('''def conv(x: f32[4, 3, 64, 64], w: f32[32, 3, 3, 3]) -> f32[4, 32, 62, 62]:
    """Few channels: all taps are one sum of 27."""
    y[b, o, p, q] = sum(x[b, c, p + i, q + j] * w[o, c, i, j], c, i, j)
    return y
''')
DIVIDES = replace(RULES, unrolled_divisions=4)


def loops(size, *more, rules=DIVIDES):
    lines = (
        *("flatten(i, inner=j)", "flatten(c, inner=ij)", f"tile(cij, size={size})"),
        *("tile(b, size=1)", "tile(p, size=1)", "compute(y, unit=matrix)", *more),
        *(
            "place(b.outer, level=grid)",
            "place(p.outer, level=grid)",
            "place(cij.outer, level=loop)",
        ),
    )
    (launch,) = lowered(SPEC, *lines, sizes={}, machine=WITH_TF32).launches

    def walk(block: tuple[Statement, ...]):
        for s in block:
            if isinstance(s, Loop):
                yield s
                yield from walk(s.body)

    return [s.unrolled for s in walk(BodyBuilder(launch, rules).each())]


def test_a_short_loop_over_merged_taps_is_written_out():
    assert loops(16) == [True]


@pytest.mark.parametrize(
    ("size", "more", "rules"),
    [(4, (), DIVIDES), (16, ("pipeline(x, stages=2)",), DIVIDES), (16, (), RULES)],
    ids=["seven steps", "stages", "another language"],
)
def test_others_stay_loops(size, more, rules):
    assert loops(size, *more, rules=rules) == [False]
