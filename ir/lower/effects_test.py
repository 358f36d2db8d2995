"""Decisions on data movement without effect are refused, or dropped from generated schedules."""

from dataclasses import replace

import pytest

from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.lower.lower import lower, settled
from ir.machine import Rendering
from ir.nest.nest import Loop
from testing.samples.samples import SMALL, WITH_THREADS, decisions, workload

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


def test_a_loop_that_is_on_the_grid_is_not_unrolled():
    spec, schedule, _, sizes = made(*TILES, "unroll_loop(m.outer, factor=2)")
    with pytest.raises(KernelError) as refused:
        lower(spec, schedule, WITH_THREADS, sizes)
    assert "would change nothing: `m` is walked by no loop" in refused.value.what
    assert refused.value.allowed == "k.outer"
    spec, schedule, _, sizes = made(*TILES, "unroll_loop(k.outer, factor=2)")
    nest = lower(spec, schedule, WITH_THREADS, sizes)
    assert {s.unroll for la in nest.launches for s in la.statements() if isinstance(s, Loop)} == {2}


@pytest.mark.parametrize("factor", [1, 17])
def test_a_factor_is_a_few_iterations(factor):
    spec, schedule, _, sizes = made(*TILES, f"unroll_loop(k.outer, factor={factor})")
    with pytest.raises(KernelError, match="no number of iterations") as refused:
        lower(spec, schedule, WITH_THREADS, sizes)
    assert refused.value.allowed == "2 to 16"


def test_edits_unroll_loops_and_not_the_grid():
    spec, schedule, _, sizes = made(*TILES)
    found = {str(e) for e in neighbours(spec, schedule, WITH_THREADS, sizes)}
    assert {f"+ unroll_loop(k.outer, factor={n})" for n in (2, 4)} <= found
    assert not any("unroll_loop(m.outer" in text for text in found)
    spec, schedule, _, sizes = made(*TILES, "unroll_loop(k.outer, factor=2)")
    (tile,) = (d for d in schedule.of("tile") if d.subject == "k")
    assert not Edit(tile, None).apply(schedule).of("unroll_loop")


@pytest.mark.parametrize(
    "hints_of, hint, pipelined",
    [
        (("access",), "evict_first", False),
        (("access", "copy"), "evict_first", True),
        (("access", "copy"), "no_allocate", False),  # copies bypass L1 anyway
    ],
)
def test_copies_that_run_ahead_take_hints_where_the_backend_gives_them(hints_of, hint, pipelined):
    hints = {"gpu": {"cache_hints": ["evict_first", "no_allocate"]}}
    rendering = Rendering(hints_of=hints_of)
    machine = replace(WITH_THREADS, details=hints, rendering=rendering)
    line = f"cache(x, hint={hint})"
    spec, schedule, _, sizes = made(*TILES, line)
    nest = lower(spec, schedule, machine, sizes)
    marked = {s.tensor for la in nest.launches for s in la.statements() if getattr(s, "cache", "")}
    assert marked == {"x"}
    spec, schedule, _, sizes = made(*TILES, "pipeline(x, stages=2)", line)
    if pipelined:
        assert lower(spec, schedule, machine, sizes).schedule.find("cache", "x")
        return
    with pytest.raises(KernelError, match="moved by nothing that takes the hint"):
        lower(spec, schedule, machine, sizes)


ROWS = (
    "tile(m, size=2)",
    "tile(n, size=8)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
)


@pytest.mark.parametrize("broadcast", ["xn", "w", "x"])
def test_a_broadcast_along_the_last_index_of_no_grid_is_refused(broadcast):
    """An operand that a launch stored is broadcast like an input; what differs along it is refused."""
    w = workload("rmsnorm_matmul")
    schedule = decisions(w.spec, "kernel(xn)", *ROWS, f"multicast({broadcast}, over=n.outer)")
    if broadcast == "xn":
        nest = lower(w.spec, schedule, SMALL, w.tune)
        assert settled(w.spec, schedule, SMALL, w.tune) == nest
        return
    with pytest.raises(KernelError) as refused:
        lower(w.spec, schedule, SMALL, w.tune)
    assert "no launch whose grid ends with `n.outer` loads" in refused.value.what
    assert refused.value.allowed == "none"
    assert not settled(w.spec, schedule, SMALL, w.tune).schedule.of("multicast")
