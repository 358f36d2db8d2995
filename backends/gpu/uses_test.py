"""What is known of a launch before its first line."""

from backends.gpu.uses import hands_on, idle, late_loads, tiles, transposed
from ir.nest.nest import Dot, Map, Reduction, Scan, Search
from testing.samples.samples import WITH_TF32, lowered, spec_of, statements

GRID = ("tile(m, size=4)", "place(m.outer, level=grid)")
SIZES = dict(M=8, K=32)


def nest(spec, *lines, **sizes):
    return lowered(spec, *lines, sizes=sizes or SIZES, machine=WITH_TF32)


def test_tables_that_are_searched_are_not_held():
    (launch,) = nest("map_id", "tile(b, size=16)", "place(b.outer, level=grid)", U=7, B=33).launches
    assert late_loads(launch) == {"keys"}


def test_what_is_held_whole_and_read_tile_by_tile_is_not_held():
    spec = spec_of("mx[m] = max(x[m, k], k)", "y[m, k] = exp(x[m, k] - mx[m])")
    (launch,) = nest(spec, *GRID, "tile(k, size=8)", "load(x, at=grid)").launches
    assert "x" in late_loads(launch)


def test_others_are_held():
    (launch,) = nest(spec_of("y[m, k] = x[m, k] * 2.0"), *GRID).launches
    assert not late_loads(launch)


def test_a_value_lies_as_what_it_is_computed_from_does():
    spec = spec_of("t[k, m] = x[m, k] * 2.0", "y[k] = sum(t[k, m], m)", result="f32[K]")
    (launch,) = nest(spec).launches
    assert transposed(launch, frozenset()) == {"t": ("m", "k")}
    assert not transposed(launch, frozenset({"x"}))


def test_a_value_with_one_operand_as_it_should_lie_is_not_transposed():
    spec = spec_of(
        "t[m, k] = x[m, k] * w[k, m]",
        "y[m] = sum(t[m, k], k)",
        inputs="x: f32[M, K], w: f32[K, M]",
        result="f32[M]",
    )
    (launch,) = nest(spec).launches
    assert "t" not in transposed(launch, frozenset())


def test_only_scans_in_loops_carry_something():
    spec = spec_of("y[m, k] = cumsum(x[m, k], k)")
    (whole,), (looped,) = nest(spec, *GRID).launches, nest(spec, *GRID, "tile(k, size=8)").launches
    assert len(idle(whole)) == 1
    assert not idle(looped)


def test_every_tile_that_a_statement_reads():
    product = spec_of(
        "acc[m, n] = sum(x[m, k] * w[k, n], k)",
        "y[m, n] = acc[m, n] + x[m, n]",
        inputs="x: f32[M, K], w: f32[K, K]",
        result="f32[M, K]",
    )
    (dot,) = statements(nest(product, "compute(acc, unit=matrix)"), Dot)
    assert [t.value for t in tiles(dot)] == [dot.a.value, dot.b.value]
    made = nest(spec_of("s[m] = sum(x[m, k] * 2.0, k)", "y[m] = s[m] + 1.0", result="f32[M]"))
    for kind in (Map, Reduction):
        assert all(list(tiles(s)) for s in statements(made, kind))
    assert all(
        list(tiles(s)) for s in statements(nest(spec_of("y[m, k] = cumsum(x[m, k], k)")), Scan)
    )
    found = nest("map_id", U=7, B=33)
    assert all(list(tiles(s)) for s in statements(found, Search))


def test_a_loop_that_keeps_what_a_iteration_computed_hands_it_on_and_one_that_reductions_does_not():
    spec = spec_of("y[m, k] = pad(y[m - 1, k], 0.0) * 0.5 + x[m, k]")
    (launch,) = nest(spec, "carry(y)").launches
    assert hands_on(launch)
    (launch,) = nest("softmax", *GRID, "tile(k, size=8)", "online(mx, into=s)").launches
    assert not hands_on(launch)
