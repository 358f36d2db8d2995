"""Tiles kept from one loop for the next one: how they are lowered, and that results are right."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.errors import KernelError
from ir.lower.lower import lower, settled
from ir.machine import Rendering
from ir.nest.footprint import value_bytes
from ir.nest.nest import Load, Loop, Recall
from ir.nest.text import nest_text
from ir.reference.inputs import random_inputs
from ir.reference.interpret import NestFault, interpret
from ir.reference.reference import evaluate
from testing.samples.right import require_right
from testing.samples.samples import (
    SMALL,
    WITH_THREADS,
    decisions,
    lowered,
    spec_of,
    statements,
    workload,
)

GRID = ("tile(h, size=1)", "tile(m, size=4)", "place(h.outer, level=grid)")
LOOPS = (*GRID, "place(m.outer, level=grid)", "tile(n, size=8)", "fuse(l, into=o)")
KEPT = "keep(a, over=n.outer)"
SIZES = {"H": 2, "M": 7, "N": 19, "D": 5}


def fault(*lines, kernel="attention") -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered(kernel, *lines)
    return caught.value


def test_the_second_loop_reads_what_the_first_one_kept():
    nest = lowered("attention", *LOOPS, KEPT)
    first, second = (s for s in nest.launches[0].body if isinstance(s, Loop))
    assert not any(isinstance(s, Recall) for s in first.body)
    assert second.body[0] == Recall("a", "n")
    assert [s.tensor for s in second.body if isinstance(s, Load)] == ["v"]
    assert [s.tensor for s in first.body if isinstance(s, Load)] == ["k"]


def test_without_it_the_second_loop_computes_again():
    loads = [s.tensor for s in statements(lowered("attention", *LOOPS), Load)]
    assert loads.count("k") > 1
    kept = [s.tensor for s in statements(lowered("attention", *LOOPS, KEPT), Load)]
    assert sorted(kept) == ["k", "q", "v"]


def test_a_kept_value_has_a_slot_for_each_tile():
    launch = lowered("attention", *LOOPS, KEPT).launches[0]
    one = 4 * 4 * 8  # bytes of a tile, of f32
    assert value_bytes(launch.value("a"), {"N": 24}) == 3 * one
    assert value_bytes(launch.value("a"), {"N": 25}) == 4 * one
    assert launch.value("s").slots is None


def test_tile_sizes_are_filled_in_afterwards():
    for tile, slots in ((8, 4), (16, 2), (5, 5)):
        lines = [line.replace("size=8", f"size={tile}") for line in LOOPS]
        value = lowered("attention", *lines, KEPT).launches[0].value("a")
        assert value_bytes(value, {"N": 25}) == slots * 4 * 4 * tile


@pytest.mark.parametrize("line", [KEPT, "keep(k, over=n.outer)", "keep(s, over=n.outer)"])
@pytest.mark.parametrize("sizes", [SIZES, {"H": 1, "M": 1, "N": 1, "D": 1}])
def test_results_stay_right(line, sizes):
    require_right(lowered("attention", *LOOPS, line), sizes)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 40))
def test_results_are_those_without_it_whatever_the_tiles(rows, tile, columns):
    lines = (f"tile(m, size={rows})", f"tile(k, size={tile})", "place(m.outer, level=grid)")
    spec, sizes = workload("layer_norm").spec, {"M": 5, "K": columns}
    inputs = random_inputs(spec, sizes, np.random.default_rng(0))
    plain, kept = (
        interpret(lowered(spec, *lines, *more, sizes=sizes), inputs, sizes)
        for more in ((), ("keep(x, over=k.outer)",))
    )
    assert all(np.array_equal(plain[name], kept[name]) for name in plain)
    expected = evaluate(spec, inputs, sizes)
    assert all(np.allclose(kept[name], expected[name]) for name in expected)


def test_what_no_loop_loads_or_computes_is_refused_or_left_out():
    found = fault(*LOOPS, "keep(q, over=n.outer)")
    assert "`keep(q, over=n.outer)` would change nothing" in found.what
    assert "no loop over `n.outer` loads or computes `q`" in found.what
    w = workload("attention")
    made = decisions(w.spec, *LOOPS, "keep(q, over=n.outer)", KEPT)
    assert KEPT in str(settled(w.spec, made, SMALL, w.tune).schedule)
    assert "keep(q" not in str(settled(w.spec, made, SMALL, w.tune).schedule)


def test_what_one_loop_loads_is_all_in_flight_at_once():
    nest = lowered("attention", *LOOPS, "online(mx, into=o)", "keep(v, over=n.outer)")
    launch = nest.launches[0]
    assert not statements(nest, Recall)
    assert value_bytes(launch.value("v"), {"N": 17, "D": 2}) == 3 * 2 * 8 * 2
    require_right(nest, SIZES)


def test_a_loop_on_the_grid_keeps_nothing():
    assert "would change nothing" in fault(*LOOPS, "keep(a, over=m.outer)").what


def test_it_needs_a_loop():
    assert "`d.outer` is no loop here" in fault(*LOOPS, "keep(a, over=d.outer)").what


def test_stages_beside_it_are_refused():
    found = fault(*LOOPS, KEPT, "pipeline(a, stages=2)")
    assert "`a` is kept, so its buffer has a slot for each tile" in found.what
    assert found.hint == f"drop pipeline(a, stages=2), or {KEPT}"


def test_a_jagged_loop_keeps_nothing():
    spec = spec_of(
        "s[b] = sum(x[l], l=range(offsets[b], offsets[b + 1]))",
        "y[b] = sum(x[l] - s[b], l=range(offsets[b], offsets[b + 1]))",
        inputs="x: f32[L], offsets: i32[B + 1]",
        result="f32[B]",
    )
    lines = ("tile(b, size=1)", "tile(l, size=4)", "place(b.outer, level=grid)")
    with pytest.raises(KernelError) as caught:
        lowered(spec, *lines, "keep(x, over=l.outer)", sizes={"L": 9, "B": 2})
    assert "the number of tiles of `x` to keep is not known" in caught.value.what


def test_machines_with_threads_do_not_have_it():
    w = workload("attention")
    with pytest.raises(KernelError, match="has no `keep`"):
        lower(w.spec, decisions(w.spec, *LOOPS, KEPT), WITH_THREADS, w.tune)


def test_a_backend_that_does_not_render_it_is_named():
    w = workload("attention")
    machine = replace(SMALL, rendering=Rendering("other", ("pipeline",)))
    with pytest.raises(KernelError, match="backend `other` of .* does not render `keep`"):
        lower(w.spec, decisions(w.spec, *LOOPS, KEPT), machine, w.tune)


def test_the_text_names_slots_and_recalls():
    text = nest_text(lowered("attention", *LOOPS, KEPT), SMALL)
    assert "local a: f32[h=1, m=4, n=8], kept in (N + 7) // 8 slots" in text
    assert "a = kept at n" in text


def test_the_interpreter_refuses_a_recall_of_nothing():
    nest = lowered("attention", *LOOPS, KEPT)
    launch = nest.launches[0]
    first = next(s for s in launch.body if isinstance(s, Loop))
    body = tuple(s for s in launch.body if s is not first)
    inputs = random_inputs(nest.spec, SIZES, np.random.default_rng(0))
    broken = replace(nest, launches=(replace(launch, body=body),))
    with pytest.raises(NestFault, match="recalled where no loop over `n` kept it"):
        interpret(broken, inputs, SIZES)
