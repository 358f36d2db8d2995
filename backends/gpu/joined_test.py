"""Contiguous axes of a tile are stored as one."""

from dataclasses import replace

import pytest

from backends.gpu import tile as to
from backends.gpu.body import BodyBuilder
from backends.gpu.plain_rules import RULES
from backends.gpu.text import statement_lines
from testing.samples.samples import WITH_TF32, lowered, spec_of

JOINS = replace(RULES, joins_axes=True)
PHASES = spec_of("y[m, k, h] = x[h, m, k] * 2.0", inputs="x: f32[2, 8, 20]", result="f32[8, 20, 2]")
ROWS = ("tile(m, size=1)", "place(m.outer, level=grid)")
PIECES = (*ROWS, "tile(k, size=16)", "place(k.outer, level=grid)")


def stored(spec, *lines, rules=JOINS):
    """The lines of a launch that compute positions and store."""
    launch = lowered(spec, *lines, sizes={}, machine=WITH_TF32).launches[0]
    body = BodyBuilder(launch, rules)
    made = [*body.once(), *body.each()]
    last = next(n for n, s in enumerate(made) if isinstance(s, to.Store))
    return [*statement_lines(made[max(0, last - 3) : last + 1])]


def test_a_whole_axis_is_stored_with_the_one_before():
    *positions, store = stored(PHASES, *PIECES)
    assert positions == [
        "k_h_at = (k_at * 2)",
        "k_h_positions = k_h_at + arange(32)",
        "k_h_mask = k_h_positions < 40",
    ]
    assert store == ("store y_pointer[m_at * 40 + k_h_positions] if k_h_mask = reshaped(y, [32])")


def test_all_axes_that_are_contiguous_are_one():
    spec = spec_of("y[m, k, h] = x[m, k, h] * 2.0", inputs="x: f32[8, 4, 2]", result="f32[8, 4, 2]")
    lines = stored(spec, "tile(m, size=2)", "place(m.outer, level=grid)")
    assert lines[-1].endswith("reshaped(y, [16])")
    assert "m_k_h_mask" not in lines[-1]


@pytest.mark.parametrize(
    ("spec", "lines", "rules"),
    [
        (PHASES, PIECES, RULES),  # the language does not ask for it
        (PHASES, (*PIECES, "tile(h, size=1)", "place(h.outer, level=grid)"), JOINS),
        # rows end within a tile
        (
            spec_of("y[m, k] = x[m, k] * 2.0", inputs="x: f32[8, 20]", result="f32[8, 20]"),
            ("tile(m, size=2)", "place(m.outer, level=grid)"),
            JOINS,
        ),
    ],
)
def test_others_are_stored_as_they_are(spec, lines, rules):
    assert "reshaped" not in stored(spec, *lines, rules=rules)[-1]
