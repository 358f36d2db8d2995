"""Where launches end, and how they tile each index."""

import pytest

from ir.errors import KernelError
from ir.lower.launches import GRID, LOOP, WHOLE, segments, tilings
from ir.verify import facts
from testing.samples.samples import decisions, lowered, workload

SOFTMAX = workload("softmax").spec


def parts(name: str, *lines: str):
    spec = workload(name).spec
    return segments(spec, decisions(spec, *lines))


def cut(name: str, *lines: str):
    spec = workload(name).spec
    schedule = decisions(spec, *lines)
    (segment,) = segments(spec, schedule)
    return tilings(segment, facts(spec), schedule)


def test_without_an_end_there_is_one_launch():
    (segment,) = parts("softmax")
    assert segment.name == "softmax_0"
    assert [e.target for e in segment.equations] == ["mx", "e", "s", "y"]
    assert segment.stored == ("y",)
    assert segment.reduced == {"k"}


def test_a_launch_ends_after_its_tensor_and_stores_what_is_read_later():
    first, second = parts("softmax", "kernel(e)")
    assert [e.target for e in first.equations] == ["mx", "e"]
    assert (first.stored, second.stored) == (("e",), ("y",))
    assert second.name == "softmax_1"


def test_an_end_after_the_last_equation_adds_no_launch():
    assert len(parts("softmax", "kernel(y)")) == 1


def test_the_index_of_a_scan_is_reduced():
    (segment,) = parts("cumsum")
    assert segment.reduced == {"k"}


def test_a_launch_ends_after_a_tensor_that_the_variant_still_has():
    with pytest.raises(KernelError) as caught:
        lowered("rmsnorm_matmul", "hoist(r, into=y)", "kernel(xn)")
    assert "`kernel(xn)` ends a launch after an unknown tensor" in str(caught.value)
    assert caught.value.allowed == "ss, r, acc, y"


def test_an_index_is_whole_on_the_grid_or_looped():
    found = cut("softmax", "tile(m, size=4)", "place(m.outer, level=grid)", "tile(k, size=8)")
    assert {i: (c.level, c.tile) for i, c in found.items()} == {"m": (GRID, 4), "k": (LOOP, 8)}
    assert {c.level for c in cut("softmax").values()} == {WHOLE}


def test_a_reduced_index_on_the_grid_runs_as_a_loop():
    found = cut("softmax", "tile(k, size=8)", "place(k.outer, level=grid)")
    assert found["k"].level == LOOP


def test_an_index_that_nothing_stored_has_is_not_cut_apart():
    found = cut("attention", "tile(n, size=8)", "place(n.outer, level=grid)")
    assert found["n"].level == LOOP


def test_placed_loops_come_in_their_order_and_before_the_others():
    lines = (
        "tile(m, size=4)",
        "tile(n, size=8)",
        "place(n.outer, level=grid)",
        "place(m.outer, level=grid)",
    )
    assert list(cut("matmul_bias_gelu", *lines)) == ["n", "m", "k"]


def test_a_jagged_range_needs_a_tile():
    with pytest.raises(KernelError, match="`l` runs over a jagged range and has no tile") as caught:
        cut("embedding_bag")
    assert caught.value.hint == "tile(l, size=32)"


def test_the_index_of_a_jagged_bound_is_cut_with_the_launch():
    assert "b" in cut("embedding_bag", "tile(l, size=4)")
