"""Loop-invariant operands are hoisted out of the loop, and results are unchanged."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ir.lower.hoisted import before_loops
from ir.lower.lower import lower
from ir.lower.scope import Scope
from ir.machine import Rendering
from ir.nest.footprint import value_bytes
from ir.nest.nest import Loop, Map, Tile
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.spec import Apply
from ir.verify import facts
from testing.samples.right import require_right
from testing.samples.samples import SMALL, decisions, lowered, spec_of

ONCE = replace(SMALL, rendering=Rendering(hoists=True))
PRODUCT = spec_of(
    "a[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = a[m, n] + f32(c[n])",
    inputs="x: f32[M, K], w: f32[K, N], c: bf16[N]",
    result="f32[M, N]",
)
# Attention of f32 queries; keys and values are streamed.
STREAMED = spec_of(
    "s[m, n] = sum(q[m, d] * k[n, d], d)",
    "mx[m] = max(s[m, n], n)",
    "p[m, n] = exp(s[m, n] - mx[m])",
    "l[m] = sum(p[m, n], n)",
    "o[m, e] = sum(p[m, n] * v[n, e], n)",
    "y[m, e] = o[m, e] / l[m] + f32(c[e])",
    inputs="q: f32[M, D], k: f32[N, D], v: f32[N, E], c: bf16[E]",
    result="f32[M, E]",
)
ROWS = ("tile(m, size=4)", "place(m.outer, level=grid)")
COLUMNS = ("tile(n, size=8)", "place(n.outer, level=loop)")
MATRIX = ("compute(a, unit=matrix)", "precision(a, dtype=bf16)")
UNITS = tuple(
    line for t in "so" for line in (f"compute({t}, unit=matrix)", f"precision({t}, dtype=bf16)")
)
ATTENTION = (*ROWS, *COLUMNS, "fuse(l, into=o)", *UNITS)
ONLINE = (*ATTENTION, "online(mx, into=o)")
SIZES = {"M": 7, "K": 6, "N": 19}
STREAM = {"M": 7, "D": 5, "N": 19, "E": 9}


def made(block, value):
    """The depths of loops at which a value is computed, in order."""
    return [
        depth
        for s in block
        for depth in (
            [1 + d for d in made(s.body, value)]
            if isinstance(s, Loop)
            else [0] * (isinstance(s, Map) and s.value == value)
        )
    ]


def test_a_conversion_that_a_loop_does_not_change_comes_before_it():
    lines = (*ROWS, *COLUMNS, *MATRIX)
    nest = lowered(PRODUCT, *lines, sizes=SIZES, machine=ONCE)
    (launch,) = nest.launches
    assert made(launch.body, "a_a") == [0] and made(launch.body, "a_b") == [1]
    (each,) = lowered(PRODUCT, *lines, sizes=SIZES, machine=SMALL).launches
    assert made(each.body, "a_a") == [1]
    for name in ("a_a", "a_b"):  # it takes no more memory
        assert value_bytes(launch.value(name), SIZES) == value_bytes(each.value(name), SIZES)
    require_right(nest, SIZES)


def test_what_no_tile_of_the_grid_changes_is_converted_once_in_a_program():
    columns = ("tile(m, size=4)", "place(m.outer, level=grid)")
    nest = lowered(PRODUCT, *columns, *MATRIX, sizes=SIZES, machine=ONCE)
    (launch,) = nest.launches
    assert made(launch.once, "a_b") == [0] and made(launch.body, "a_b") == []
    assert made(launch.body, "a_a") == [0]
    require_right(nest, SIZES)


def test_streamed_attention_converts_its_queries_once():
    nest = lowered(STREAMED, *ONLINE, sizes=STREAM, machine=ONCE)
    body = nest.launches[0].body
    assert made(body, "s_a") == [0]
    assert [made(body, name) for name in ("s_b", "o_a", "o_b")] == [[1], [1], [1]]
    require_right(nest, STREAM)


def test_loops_one_after_another_share_what_was_converted():
    """Each of the two passes over keys computes the scores again, of the same queries."""
    launch = lowered(STREAMED, *ATTENTION, sizes=STREAM, machine=ONCE).launches[0]
    assert made(launch.body, "s_a") == [0] and made(launch.body, "s_b") == [1]
    assert made(launch.body, "s") == [] and not any(v.name == "s_a_2" for v in launch.values)
    require_right(lowered(STREAMED, *ATTENTION, sizes=STREAM, machine=ONCE), STREAM)


def test_a_loop_over_columns_of_the_result_does_not_convert_the_rows_again():
    """As attention whose values are wider than a tile: the probabilities are of all of it."""
    lines = (*ROWS, "tile(e, size=4)", "place(e.outer, level=loop)", *UNITS)
    nest = lowered(STREAMED, *lines, sizes=STREAM, machine=ONCE)
    assert made(nest.launches[0].body, "o_a") == [0]
    require_right(nest, STREAM)


def test_what_a_loop_goes_on_from_stays_in_it():
    """A running maximum changes in each iteration, though no index of the loop is in it."""
    launch = Scope(None, frozenset("m"), tensors={"q": "q"}, loads={1: "k"})
    loop = Scope(launch, frozenset("n"), tensors={"mx": "mx"})
    both = Apply("mul", (Tile("q"), Tile("k")))
    assert before_loops(loop, {"m"}, both) is launch
    assert before_loops(loop, {"m", "n"}, both) is loop  # a position of the loop
    for changed in ("mx", "carried"):  # what a scope does not know may change, too
        assert before_loops(loop, {"m"}, Apply("sub", (both, Tile(changed)))) is loop


SCHEDULES = {
    "product": (PRODUCT, MATRIX, "mnk"),
    "attention": (STREAMED, UNITS, "mne"),
    "online": (STREAMED, (*UNITS, "fuse(l, into=o)", "online(mx, into=o)"), "mn"),
}


@pytest.mark.parametrize("kind", SCHEDULES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_results_are_those_of_converting_in_each_iteration_to_the_bit(kind, data):
    spec, lines, indices = SCHEDULES[kind]
    sizes = {name: data.draw(st.integers(1, 9), name) for name in facts(spec).sizes}
    for index in indices:
        level = data.draw(st.sampled_from(("none", "loop", *(["grid"] * (index == "m")))), index)
        if level != "none":
            tile = data.draw(st.integers(1, 5), f"tile of {index}")
            lines = (*lines, f"tile({index}, size={tile})", f"place({index}.outer, level={level})")
    schedule = decisions(spec, *lines)
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    once, each = (
        interpret(lower(spec, schedule, machine, sizes), inputs, sizes) for machine in (ONCE, SMALL)
    )
    assert all(np.array_equal(once[name], each[name]) for name in each)
