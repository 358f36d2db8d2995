"""What lowering refuses, and where it places loads and stores."""

import pytest

from ir.errors import KernelError
from ir.nest.nest import Load, Loop, Search, Store, Take
from ir.parse.parse import parse_spec
from testing.samples.samples import WITH_REGISTERS, lowered, spec_of, statements

BAG = ("tile(l, size=4)",)


def fault(spec, *lines, sizes=None) -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered(spec, *lines, sizes=sizes)
    return caught.value


def test_a_jagged_range_needs_its_bounds_index_one_at_a_time():
    found = fault("embedding_bag", *BAG, "tile(b, size=2)", "place(b.outer, level=grid)")
    assert "`l` runs over a range that `b` bounds" in str(found)
    assert "`b` must be walked one at a time" in str(found)
    assert "tile(b, size=1)" in found.hint


def test_a_jagged_range_needs_its_bounds_index_cut():
    assert "must be walked one at a time" in str(fault("embedding_bag", *BAG))


def test_a_bound_is_read_from_its_tensor_at_the_tile():
    nest = lowered("embedding_bag", *BAG, "tile(b, size=1)", "place(b.outer, level=grid)")
    (loop,) = statements(nest, Loop)
    assert (loop.low.tensor, loop.high.tensor) == ("offsets", "offsets")
    assert loop.high.position.terms == (("b", 1),)
    assert "offsets" in {p.name for p in nest.launches[0].parameters}


def test_an_intermediate_is_read_where_it_is_computed():
    spec = spec_of("t[m, k] = x[m, k] * 2.0", "y[m, k] = t[m, 0] + x[m, k]")
    found = fault(spec, sizes={"M": 2, "K": 3})
    assert "`t` is read at other indices than it is computed at" in str(found)
    assert found.hint == "end a launch there: kernel(t)"
    assert len(lowered(spec, "kernel(t)", sizes={"M": 2, "K": 3}).launches) == 2


def test_a_transposed_read_of_an_intermediate_is_refused():
    spec = spec_of(
        "t[m, n] = x[m, n] * 2.0", "y[m, n] = t[n, m]", inputs="x: f32[M, M]", result="f32[M, M]"
    )
    assert "is read at other indices" in str(fault(spec, sizes={"M": 2}))


def test_a_load_in_a_jagged_loop_is_not_shared():
    found = fault(
        "embedding_bag",
        *BAG,
        "tile(b, size=1)",
        "tile(d, size=8)",
        "place(b.outer, level=grid)",
        "place(d.outer, level=grid)",
        "multicast(idx, over=d.outer)",
    )
    assert "`idx` is loaded in a jagged loop" in str(found)
    assert found.place.line == 7


def test_what_no_grid_index_enters_is_loaded_once_a_launch():
    nest = lowered("layer_norm", "tile(m, size=4)", "place(m.outer, level=grid)")
    (launch,) = nest.launches
    assert [s.tensor for s in launch.once if isinstance(s, Load)] == ["g", "b"]


def test_what_one_output_lacks_is_stored_by_one_tile_along_it():
    spec = parse_spec(
        "def f(x: f32[M, K], g: f32[M]) -> (f32[M, K], f32[M]):\n"
        '    """F."""\n    y[m, k] = x[m, k] + 1.0\n    z[m] = g[m] * 2.0\n    return y, z\n'
    )
    lines = (
        "tile(m, size=2)",
        "tile(k, size=2)",
        "place(m.outer, level=grid)",
        "place(k.outer, level=grid)",
    )
    nest = lowered(spec, *lines, sizes={"M": 4, "K": 5})
    assert {s.tensor: s.once for s in statements(nest, Store)} == {"y": (), "z": ("k",)}


def test_borders_lie_whole_before_the_grid_and_serve_search_and_look_up():
    nest = lowered("map_id", "tile(b, size=16)", "place(b.outer, level=grid)")
    (launch,) = nest.launches
    assert [s.tensor for s in launch.once if isinstance(s, Load)] == ["keys"]
    (search,), (take,) = statements(nest, Search), statements(nest, Take)
    assert search.borders.value == take.table.value == "keys"


@pytest.mark.parametrize(
    ("value", "borders", "dtype"),
    [
        *(("m + 1", "i32", "i32"), ("i64(m)", "i32", "i64"), ("m", "i32", "i32")),
        # Integers among floats become floats, for machines that compare one dtype alone.
        *(("m * 2.0", "bf16", "f32"), ("m + 1", "f32", "f32"), ("m", "f64", "f64")),
    ],
)
def test_what_is_searched_for_has_its_own_dtype(value, borders, dtype):
    spec = spec_of(f"y[m] = bucketize({value}, b)", inputs=f"b: {borders}[K]", result="i32[M]")
    nest = lowered(spec, sizes={"M": 2, "K": 3})
    (search,) = statements(nest, Search)
    (launch,) = nest.launches
    assert {v.name: v.dtype for v in launch.values}[search.source.value] == dtype


def test_borders_that_are_read_with_padding_are_loaded_for_it():
    spec = spec_of(
        "p[m, k] = bucketize(x[m, k], b)",
        "y[m, k] = f32(p[m, k]) + pad(b[k % K + 1], 1.5)",
        inputs="x: f32[M, K], b: f32[K]",
    )
    nest = lowered(spec, "tile(m, size=1)", sizes={"M": 2, "K": 3}, machine=WITH_REGISTERS)
    assert not statements(nest, Take)
    assert [s.pad for s in statements(nest, Load) if s.tensor == "b"] == [None, 1.5]


def test_a_reading_is_loaded_once_in_a_scope_however_often_it_is_read():
    spec = spec_of("y[m, k] = x[m, k] * x[m, k] + x[m, k]")
    assert len(statements(lowered(spec, sizes={"M": 2, "K": 3}), Load)) == 1


def test_lowering_twice_gives_equal_nests():
    lines = ("tile(m, size=16)", "tile(k, size=8)", "place(m.outer, level=grid)")
    assert lowered("rmsnorm_matmul", *lines) == lowered("rmsnorm_matmul", *lines)


TABLE = ("tile(b, size=4)", "place(b.outer, level=grid)")


def test_what_the_prologue_loads_is_broadcast_to_all_tiles():
    launch = lowered("map_id", *TABLE, "multicast(keys, over=b.outer)").launches[0]
    (load,) = launch.once
    assert (load.tensor, load.shared) == ("keys", "b")
    (alone,) = lowered("map_id", *TABLE).launches[0].once
    assert alone.shared is None


@pytest.mark.parametrize("line", ["multicast(ids, over=b.outer)", "multicast(g, over=m.outer)"])
def test_a_broadcast_of_what_differs_from_tile_to_tile_is_refused(line):
    kernel, lines = ("map_id", TABLE) if "ids" in line else ("layer_norm", ("tile(m, size=2)",))
    found = fault(kernel, *lines, line)
    assert f"`{line}` would change nothing: no launch whose grid ends with" in found.what
    assert found.hint == f"drop {line}"


def test_an_operand_has_the_stages_of_the_computed_tile_that_it_converts():
    lines = ("tile(m, size=4)", "tile(n, size=4)", "compute(o, unit=matrix)")
    narrow = "precision(o, dtype=bf16)"
    for stages, more in ((1, ()), (3, ("pipeline(p, stages=3)",))):
        launch = lowered("attention", *lines, narrow, *more).launches[0]
        assert launch.value("o_a").stages == stages
