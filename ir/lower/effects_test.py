"""Decisions on how tensors move that would change nothing are refused, or left out of made-up schedules."""

import pytest

from ir.errors import KernelError
from ir.lower.lower import lower, settled
from testing.samples.samples import SMALL, decisions, workload

TILES = ("tile(m, size=2)", "tile(k, size=16)", "place(m.outer, level=grid)")
USEFUL = ("load(x, at=grid)", "pipeline(x, stages=2)")
# Weights of a row are loaded once, before the grid, and wholly where `k` has no tile.
IDLE = {
    "load(g, at=grid)": "no loop inside `grid` walks through `g`",
    "pipeline(g, stages=2)": "`g` is moved once in a program",
}


def made(*lines):
    w = workload("layer_norm")
    return w.spec, decisions(w.spec, *lines), SMALL, w.tune


@pytest.mark.parametrize("line", USEFUL)
def test_a_decision_with_an_effect_is_kept(line):
    nest = lower(*made(*TILES, line))
    assert nest.launches != lower(*made(*TILES)).launches
    assert settled(*made(*TILES, line)) == nest


@pytest.mark.parametrize(("line", "why"), IDLE.items())
def test_a_decision_without_effect_is_refused_with_the_reason(line, why):
    rows = (TILES[0], TILES[2])
    with pytest.raises(KernelError) as refused:
        lower(*made(*rows, line, USEFUL[1]))
    assert refused.value.what == f"`{line}` would change nothing: {why}" + (
        ", with nothing to prefetch" if "pipeline" in line else ""
    )
    assert refused.value.hint == f"drop {line}"
    nest = settled(*made(*rows, line, USEFUL[1]))
    assert nest == lower(*made(*rows, USEFUL[1]))


def test_what_is_refused_for_another_reason_is_refused_when_settled_too():
    with pytest.raises(KernelError, match="`k.outer` is no place here"):
        settled(*made("load(x, at=k.outer)"))
