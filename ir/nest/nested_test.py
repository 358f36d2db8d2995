"""Which loops can be flattened into one."""

import pytest

from ir.nest.nest import Loop
from ir.nest.nested import nested
from testing.samples.samples import SMALL, lowered, spec_of

SPEC = spec_of(
    "y[o, l] = sum(x[l + i, c] * w[i, c, o], c, i=3)",
    inputs="x: f32[L + 2, C], w: f32[3, C, O]",
    result="f32[O, L]",
)
LOOPS = (
    "tile(c, size=8)",
    "tile(i, size=1)",
    "place(c.outer, level=loop)",
    "place(i.outer, level=loop)",
)


def outermost(spec, *lines, sizes):
    nest = lowered(spec, *lines, sizes=sizes, machine=SMALL)
    return next(s for s in nest.launches[0].statements() if isinstance(s, Loop))


def test_loops_that_do_nothing_else_are_one():
    found = nested(outermost(SPEC, *LOOPS, sizes={"C": 20, "O": 4, "L": 6}))
    assert [s.index for s in found] == ["c", "i"]
    assert not any(isinstance(s, Loop) for s in found[-1].body)


@pytest.mark.parametrize(
    ("spec", "lines", "sizes"),
    [
        (
            spec_of(
                "a[m] = max(x[m, k], k)", "y[m] = sum(exp(x[m, k] - a[m]), k)", result="f32[M]"
            ),
            ("tile(m, size=1)", "tile(k, size=4)", "place(m.outer, level=loop)"),
            {"M": 3, "K": 9},
        ),
        (SPEC, LOOPS[:1] + LOOPS[2:3], {"C": 20, "O": 4, "L": 6}),
    ],
    ids=["a loop with two loops", "one loop"],
)
def test_others_stay_alone(spec, lines, sizes):
    loop = outermost(spec, *lines, sizes=sizes)
    assert nested(loop) == (loop,)


def test_loops_that_tiles_bound_are_one():
    spec = spec_of(
        "y[m, j] = sum(x[m, r, s] * w[j, r, s], r=range(0, j // 2 + 1), s=range(0, j % 2 + 1))",
        inputs="x: f32[M, 2, 2], w: f32[4, 2, 2]",
        result="f32[M, 4]",
    )
    lines = ("tile(j, size=1)", "tile(r, size=1)", "tile(s, size=1)", "place(j.outer, level=grid)")
    found = nested(outermost(spec, *lines, sizes={"M": 3}))
    assert [s.index for s in found] == ["r", "s"]
