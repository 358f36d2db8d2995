"""Operations on layouts, by their definitions over all coordinates."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backends.gpu.layout.algebra import (
    blocked_product,
    coalesce,
    complement,
    composition,
    left_inverse,
    logical_divide,
    logical_product,
    raked_product,
    right_inverse,
    tiled_divide,
    zipped_divide,
)
from backends.gpu.layout.layout import Layout, row_major
from backends.gpu.layout.strategies import (
    compact_layouts,
    layouts,
    spread_layouts,
    tilers,
)
from backends.gpu.layout.swizzle import ComposedLayout, Swizzle
from backends.gpu.layout.text import parse_layout
from ir.errors import KernelError


def continued(layout, index):
    """The layout at an index, its last mode without an end."""
    modes = coalesce(layout).flat
    total = 0
    for extent, stride in modes[:-1]:
        index, here = divmod(index, extent)
        total += here * stride
    return total + index * modes[-1][1]


@given(layouts())
def test_coalescing_keeps_the_function_and_merges_all_that_merge(layout):
    found = coalesce(layout)
    assert found.indices() == layout.indices()
    pairs = list(zip(found.flat, found.flat[1:]))
    assert all(s * d != after for (s, d), (_, after) in pairs)
    assert found == Layout(1, 0) or all(s > 1 for s, _ in found.flat)


@given(layouts())
def test_coalescing_by_mode_keeps_each_mode(layout):
    found = coalesce(layout, (1,) * len(layout))
    assert [mode.indices() for mode in found] == [mode.indices() for mode in layout]
    assert all(coalesce(mode) == mode for mode in found)


@given(layouts(), layouts())
def test_a_composition_is_one_function_after_the_other(outer, inner):
    try:
        found = composition(outer, inner)
    except KernelError:
        assume(False)
    assert found.indices() == [continued(outer, i) for i in inner.indices()]
    assert [mode.size for mode in found] == [mode.size for mode in inner]


@given(st.data())
def test_a_tile_that_divides_can_always_be_composed(data):
    """Compact layouts of powers of two meet the divisibility conditions."""
    sizes = st.lists(st.sampled_from((2, 4, 8)), min_size=1, max_size=3)
    outer = row_major(tuple(data.draw(sizes)))
    inner = data.draw(tilers(outer.size))
    assert composition(outer, inner).indices() == [outer(i) for i in inner.indices()]


@pytest.mark.parametrize(
    ("outer", "inner", "found"),
    [
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(4,2,8):(3,12,97)", "3:3", "3:9"),
        ("96:1", "(3,32):(32,1)", "(3,32):(32,1)"),
        ("(3,32):(32,1)", "6:16", "None"),
        ("(4,6):(6,1)", "6:1", "None"),
        ("(6,4):(4,1)", "2:4", "2:16"),
        ("(6,4):(4,1)", "3:4", "None"),
    ],
)
def test_compositions_of_cutes_documents_and_non_powers_of_two(outer, inner, found):
    outer, inner = parse_layout(outer), parse_layout(inner)
    if found == "None":
        with pytest.raises(KernelError, match="cannot be composed"):
            composition(outer, inner)
    else:
        assert str(composition(outer, inner)) == found


@given(spread_layouts(), st.integers(1, 400))
def test_a_complement_reaches_each_index_once(layout, size):
    rest = complement(layout, size)
    together = sorted(i + j for i in layout.indices() for j in rest.indices())
    assert together == list(range(len(together))), "disjoint, and without gaps"
    assert len(together) >= size
    if size > layout.cosize:
        assert rest.indices() == sorted(rest.indices()), "ordered"


@given(layouts())
def test_a_layout_without_a_complement_is_refused(layout):
    try:
        rest = complement(layout)
    except KernelError as error:
        assert "has no complement" in str(error)
        return
    distinct = sorted({i + j for i in layout.indices() for j in rest.indices()})
    assert distinct == list(range(len(distinct)))


@given(st.one_of(layouts(), compact_layouts(), spread_layouts()))
def test_a_right_inverse_is_undone_by_the_layout(layout):
    found = right_inverse(layout)
    assert [layout(i) for i in found.indices()] == list(range(found.size))


@pytest.mark.parametrize(
    ("layout", "found"),
    [
        ("(4,8):(8,1)", "(8,4):(4,1)"),
        ("(4,2,3):(1,0,4)", "(4,3):(1,8)"),
        ("(4,8):(1,5)", "4:1"),
        ("8:2", "1:0"),
    ],
)
def test_a_right_inverse_ends_where_the_strides_do(layout, found):
    assert str(right_inverse(parse_layout(layout))) == found


@given(compact_layouts())
def test_a_compact_layout_has_inverses_of_its_size(layout):
    assert right_inverse(layout).size == layout.size
    inverse = left_inverse(layout)
    assert [inverse(i) for i in layout.indices()] == list(range(layout.size))
    assert sorted(inverse.indices()) == list(range(layout.size))


@given(spread_layouts())
def test_a_left_inverse_undoes_the_layout(layout):
    inverse = left_inverse(layout)
    assert [inverse(i) for i in layout.indices()] == list(range(layout.size))


@pytest.mark.parametrize("text", ["(4,2):(1,0)", "(4,4):(1,2)"])
def test_a_layout_that_repeats_an_index_has_no_left_inverse(text):
    with pytest.raises(KernelError, match="has no"):
        left_inverse(parse_layout(text))


@given(st.data())
def test_a_division_is_the_layout_at_the_tile_and_at_its_complement(data):
    layout = data.draw(compact_layouts())
    tile = data.draw(tilers(layout.size))
    try:
        found = logical_divide(layout, tile)
    except KernelError:
        assume(False)
    rest = complement(tile, layout.size)
    assert len(found) == 2 and found[0].size == tile.size and found[1].size == rest.size
    for j, start in enumerate(rest.indices()):
        assert [found(i, j) for i in range(tile.size)] == [
            layout(start + i) for i in tile.indices()
        ]
    assert sorted(found.indices()) == list(range(layout.size))


@given(st.integers(2, 40), st.integers(1, 40))
def test_a_tile_that_does_not_divide_covers_the_rest_too(size, tile):
    found = logical_divide(Layout(size, 1), tile)
    assert found.size >= size and found.indices() == list(range(found.size))
    assert found.size - size < tile


@given(st.data())
def test_divisions_by_mode_gather_tiles_and_rests(data):
    layout = data.draw(compact_layouts().filter(lambda a: len(a) > 1))
    tiler = tuple(data.draw(tilers(mode.size)) for mode in layout)[: data.draw(st.integers(1, 2))]
    try:
        logical = logical_divide(layout, tiler)
    except KernelError:
        assume(False)
    zipped, tiled = zipped_divide(layout, tiler), tiled_divide(layout, tiler)
    count = len(tiler)
    assert [zipped[0][i] for i in range(count)] == [logical[i][0] for i in range(count)]
    rests = [logical[i][1] for i in range(count)] + [layout[i] for i in range(count, len(layout))]
    assert list(zipped[1]) == rests == list(tiled)[1:] and tiled[0] == zipped[0]
    assert sorted(zipped.indices()) == list(range(layout.size))


def test_none_divides_nothing():
    layout = parse_layout("(4,8):(8,1)")
    assert logical_divide(layout, (None, 2)) == parse_layout("(4,(2,4)):(8,(1,2))")
    assert str(zipped_divide(layout, (None, 2))) == "((1,2),(4,4)):((0,1),(8,2))"
    assert composition(layout, None) == logical_product(layout, None) == layout


@given(spread_layouts(most=40), layouts(most=40))
def test_a_product_repeats_the_layout_at_its_complement(layout, tiler):
    try:
        found = logical_product(layout, tiler)
    except KernelError:
        assume(False)
    free = complement(layout, layout.size * tiler.cosize)
    starts = [free(i) for i in tiler.indices()]
    assert [found(0, j) for j in range(tiler.size)] == starts
    for j, start in enumerate(starts):
        assert [found(i, j) for i in range(layout.size)] == [start + i for i in layout.indices()]


@given(compact_layouts(most=40), compact_layouts(most=40))
def test_blocked_and_raked_products_are_the_product_mode_by_mode(block, tiler):
    try:
        blocked, raked = blocked_product(block, tiler), raked_product(block, tiler)
    except KernelError:
        assume(False)
    rank = max(len(block), len(tiler))
    assert len(blocked) == len(raked) == rank
    assert [(a, b) for a, b in blocked] == [(a, b) for b, a in raked]
    product = logical_product(block, tiler)
    assert sorted(blocked.indices()) == sorted(product.indices())
    for i in range(block.size):
        at = _by_mode(block, i, rank)
        assert blocked(tuple((c, 0) for c in at)) == block(i)


def _by_mode(layout, linear, rank):
    """A linear coordinate for each mode."""
    found = []
    for mode in layout:
        linear, here = divmod(linear, mode.size)
        found.append(here)
    return found + [0] * (rank - len(found))


@pytest.mark.parametrize(
    ("operation", "block", "tiler", "found"),
    [
        (blocked_product, "(2,5):(5,1)", "(3,4):(1,3)", "((2,3),(5,4)):((5,10),(1,30))"),
        (raked_product, "(2,5):(5,1)", "(3,4):(1,3)", "((3,2),(4,5)):((10,5),(30,1))"),
        (logical_product, "(2,2):(4,1)", "6:1", "((2,2),(2,3)):((4,1),(2,8))"),
        (logical_divide, "(4,2,3):(2,1,8)", "4:2", "((2,2),(2,3)):((4,1),(2,8))"),
    ],
)
def test_examples_of_cutes_documents(operation, block, tiler, found):
    assert str(operation(parse_layout(block), parse_layout(tiler))) == found


@given(st.data())
def test_operations_on_a_swizzled_layout_are_those_of_the_layout(data):
    layout = row_major((8, 32))
    whole = ComposedLayout(Swizzle(2, 2, 3), 0, layout)
    for operation in (composition, logical_divide, zipped_divide, tiled_divide):
        tiler = (data.draw(tilers(8)), data.draw(tilers(32)))
        assert operation(whole, tiler) == ComposedLayout(whole.swizzle, 0, operation(layout, tiler))
    assert composition(whole, Layout(16, 8)).indices() == [whole(8 * i) for i in range(16)]


def test_a_tiler_of_too_many_modes_is_refused():
    for operation in (composition, logical_divide, zipped_divide, tiled_divide, logical_product):
        with pytest.raises(KernelError, match="does not fit"):
            operation(Layout((4, 8), (8, 1)), (2, 2, 2))
