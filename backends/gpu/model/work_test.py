"""What a program of a launch asks of the engines: what the compiler computes once, and which operand is on the right."""

from dataclasses import replace

import pytest

from backends.gpu.model.extents import Extents
from backends.gpu.model.model import terms
from backends.gpu.model.work import work
from backends.gpu.plain_rules import RULES
from backends.registry import target
from ir.lower.lower import lower
from ir.machine import Rendering
from ir.parse.parse import parse_spec
from machines.gpu.facts import facts
from testing.samples.samples import decisions, spec_of

CHIP = replace(target("h200"), rendering=Rendering())  # of a backend that renders all
FLAT = replace(RULES, flat_sums=True, k_last=True)


def terms_of(spec, *lines, rules=RULES):
    nest = lower(spec, decisions(spec, *lines), CHIP, {})
    (launch,) = nest.launches
    return terms(launch, CHIP, rules, {}, {})


def mapped(body):
    spec = spec_of(body, inputs="x: f32[4096, 1024]", result="f32[4096, 1024]")
    return terms_of(spec, "tile(m, size=4)", "place(m.outer, level=grid)")["vector_us"]


def test_a_division_by_a_number_is_a_product_and_shifts():
    where = "y[m, k] = where((m * 1024 + k) {} > 5, x[m, k], 0.0)"
    by_eight, by_seven, by_number = (
        mapped(where.format(by)) for by in ("// 8", "// 7", "// (k + 1)")
    )
    assert by_eight < by_seven < by_number


def test_what_does_not_change_in_a_loop_is_computed_before_it():
    """Which element of a row of positions it is, changes in the inner loop alone."""
    text = '''def f(x: f32[64, 4096], w: f32[32]) -> f32[64, 64]:
    """F."""
    a[i, k] = sum(w[{row}] * x[i, j * 64 + k], j=64)
    return a
'''
    lines = (
        *("tile(i, size=1)", "tile(k, size=64)", "tile(j, size=1)", "threads(a, count=64)"),
        *("place(i.outer, level=grid)", "place(j.outer, level=loop)"),
    )
    kept, changing = (
        terms_of(parse_spec(text.format(row=row)), *lines)["vector_us"]
        for row in ("(i * 7 + k) // 5 % 32", "(i * 7 + k + j) // 5 % 32")
    )
    assert kept < changing


def test_a_reduction_of_one_element_adds_it():
    spec = spec_of("y[m] = max(x[m, k], k)", inputs="x: f32[4096, 16]", result="f32[4096]")
    outer = ("tile(m, size=128)", "place(m.outer, level=grid)", "place(k.outer, level=loop)")
    one, four = (terms_of(spec, *outer, f"tile(k, size={n})") for n in (1, 4))
    assert one["shared_us"] == 0.0 < four["shared_us"]


IMAGE = parse_spec('''def f(x: f32[16, 256, 4096], w: f32[256, 256]) -> f32[16, 256, 4096]:
    """F."""
    y[i, j, k] = sum(x[i, l, k] * w[j, l], l)
    return y
''')
TILES = (
    *("tile(i, size=1)", "tile(j, size=128)", "tile(k, size=128)", "tile(l, size=32)"),
    *(f"place({i}.outer, level=grid)" for i in "ijk"),
    *("place(l.outer, level=loop)", "compute(y, unit=matrix)", "precision(y, dtype=tf32)"),
    *("pipeline(x, stages=3)", "pipeline(w, stages=3)", "threads(y, count=256)"),
)
BULK = ("copy(x, by=bulk)", "copy(w, by=bulk)")


def test_the_right_operand_is_what_the_sum_has_last():
    """Pixels are its columns; where sums are no matrices of their own, the right operand is what the equation has there."""
    plain, flat = (terms_of(IMAGE, *TILES, rules=rules)["shared_us"] for rules in (RULES, FLAT))
    assert flat > 2 * plain


def test_boxes_that_change_sides_are_not_transposed():
    by_threads, boxes = (terms_of(IMAGE, *TILES, *more, rules=FLAT) for more in ((), BULK))
    assert boxes["shared_us"] < by_threads["shared_us"] / 2


def test_too_few_rows_for_the_large_instruction_keep_their_side():
    narrow = (*(t for t in TILES if not t.startswith("tile(k")), "tile(k, size=32)", *BULK)
    first, again = (
        terms_of(IMAGE, *narrow, rules=rules)["shared_us"]
        for rules in (FLAT, replace(FLAT, k_last=False))
    )
    assert first == again


SQUARES = [f"tile({i}, size=32)" for i in "mk"] + [f"place({i}.outer, level=grid)" for i in "mk"]


def test_taps_that_are_written_out_read_as_much_as_in_loops():
    spec = spec_of(
        "y[m, k] = max(pad(x[m + i - 1, k + j - 1], -inf), i=3, j=3)",
        inputs="x: f32[4096, 4096]",
        result="f32[4096, 4096]",
    )
    loops = [f"tile({i}, size=1)" for i in "ij"] + [f"place({i}.outer, level=loop)" for i in "ij"]
    looped = terms_of(spec, *SQUARES, *loops)
    written = terms_of(spec, *(f"unroll({i})" for i in "ij"), *SQUARES)
    for figure in ("cache_us", "dram_us"):
        assert looped[figure] * 0.8 < written[figure] < looped[figure] * 1.25


def test_rows_between_those_of_another_load_are_read_anew():
    """Of windows that do not overlap every second row is read by each tap."""
    spec = spec_of(
        "y[m, k] = max(x[m * 2 + i, k], i=2)",
        inputs="x: f32[8192, 4096]",
        result="f32[4096, 4096]",
    )
    single = spec_of("y[m, k] = x[m * 2, k]", inputs="x: f32[8192, 4096]", result="f32[4096, 4096]")
    both, one = terms_of(spec, "unroll(i)", *SQUARES), terms_of(single, *SQUARES)
    assert both["cache_us"] > 1.4 * one["cache_us"]


@pytest.mark.parametrize("first", [0, 64, 4096])
def test_what_was_counted_holds_with_other_registers_for_loads(first):
    text = '''def f(x: f32[4096, 4096]) -> f32[4096]:
    """F."""
    y[m] = sum(x[m, k] * 2.0, k)
    return y
'''
    spec = parse_spec(text)
    tiles = ("tile(m, size=16)", "place(m.outer, level=grid)", "tile(k, size=1024)")
    nest = lower(spec, decisions(spec, *tiles, "place(k.outer, level=loop)"), CHIP, {})
    (launch,), table = nest.launches, facts(CHIP)

    def done(free, known=None):
        return work(launch, Extents(launch, {}, RULES), CHIP, table, 4, 1, free, known)

    known = []
    assert done(first, known) == done(first)
    assert done(128, known) == done(128) and done(8, known) == done(8)
    assert done(8) != done(4096)
