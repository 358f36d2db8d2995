"""Flattened index pairs: convolutions as one matmul, pointwise kernels as flat ones."""

import pytest

from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.nest.nest import Dot, Load, Store
from ir.print import expression_text
from ir.variant.variant import formulate
from testing.samples.right import require_right
from testing.samples.samples import (
    SMALL,
    WITH_TF32,
    decisions,
    lowered,
    spec_of,
    statements,
    workload,
)

CONV = workload("conv2d").spec
GEMM = (
    "flatten(p, inner=q)",
    "tile(b, size=1)",
    "tile(o, size=16)",
    "tile(pq, size=32)",
    "tile(c, size=16)",
    "tile(i, size=1)",
    "tile(j, size=1)",
    "place(b.outer, level=grid)",
    "place(o.outer, level=grid)",
    "place(pq.outer, level=grid)",
    "compute(acc, unit=matrix)",
)


@pytest.mark.parametrize("sizes", workload("conv2d").checks)
def test_a_convolution_is_one_product_of_rows_and_positions(sizes):
    nest = require_right(lowered(CONV, *GEMM, sizes=sizes, machine=WITH_TF32), sizes)
    (launch,) = nest.launches
    assert [g.index for g in launch.grid] == ["b", "o", "pq"]
    (dot,) = statements(nest, Dot)
    assert dot.over == ("c", "i", "j")
    (load,) = statements(nest, Load, "x")
    assert [one.rows is not None for one in load.region] == [False, False, True, True]
    assert launch.value(load.value).names == ("b", "c", "pq", "i", "j")
    (store,) = statements(nest, Store)
    assert [one.axis for one in store.region] == ["b", "o", "pq"]


@pytest.mark.parametrize("sizes", workload("conv2d").checks)
@pytest.mark.parametrize(
    "more",
    [
        ("split_k(acc, over=c, parts=2)",),
        ("pack(x, order=b_p_q_c)", "pack(w, order=o_i_j_c)"),
    ],
)
def test_with_other_decisions(sizes, more):
    require_right(lowered(CONV, *GEMM, *more, sizes=sizes, machine=WITH_TF32), sizes)


def test_three_indices_become_one_by_two_decisions():
    spec = spec_of(
        "acc[b, p, q, o] = sum(x[b, p + i, q + j, c] * w[o, i, j, c], c, i=3, j=2)",
        "y[b, p, q, o] = acc[b, p, q, o] + r[b, p, q, o]",
        inputs="x: f32[B, P + 2, Q + 1, C], w: f32[O, 3, 2, C], r: f32[B, P, Q, O]",
        result="f32[B, P, Q, O]",
    )
    sizes = {"B": 3, "P": 4, "Q": 5, "C": 7, "O": 6}
    lines = (
        "flatten(p, inner=q)",
        "flatten(b, inner=pq)",
        "tile(bpq, size=16)",
        "place(bpq.outer, level=grid)",
        "tile(c, size=4)",
        "compute(acc, unit=matrix)",
    )
    nest = require_right(lowered(spec, *lines, sizes=sizes, machine=WITH_TF32), sizes)
    assert nest.variant.equation("y").indices == ("bpq", "o")
    (load,) = statements(nest, Load, "r")
    assert [one.rows for one in load.region] == [None, None]


def test_parts_of_a_part_are_parts_of_the_whole():
    spec = spec_of(
        "y[b, o] = sum(x[b + i, 2 * j + c] * w[o, i, j, c], i, j, c)",
        inputs="x: f32[6, 14], w: f32[5, 3, 4, 8]",
        result="f32[4, 5]",
    )
    made = formulate(spec, decisions(spec, "flatten(j, inner=c)", "flatten(i, inner=jc)"))
    (read,) = (r for r in made.equation("y").reads() if r.tensor == "x")
    assert [expression_text(p) for p in read.at] == [
        "b + ijc // 32",
        "2 * (ijc // 8 % 4) + ijc % 8",
    ]
    require_right(
        lowered(spec, "flatten(j, inner=c)", "flatten(i, inner=jc)", sizes={}, machine=WITH_TF32),
        {},
    )


def test_element_by_element_all_is_flat():
    spec = spec_of(
        "m[b, c] = sum(x[b, c, h], h)",
        "y[b, c, h] = x[b, c, h] - m[b, c] + where(b > c, 1.0, z[c])",
        inputs="x: f32[B, C, H], z: f32[C]",
        result="f32[B, C, H]",
    )
    sizes = {"B": 3, "C": 4, "H": 9}
    lines = ("flatten(b, inner=c)", "tile(bc, size=5)", "place(bc.outer, level=grid)")
    nest = require_right(lowered(spec, *lines, sizes=sizes, machine=WITH_TF32), sizes)
    (load,) = statements(nest, Load, "x")
    assert [one.axis for one in load.region] == ["bc", "h"]


REDUCED = spec_of(
    "acc[b, o, p]: [B, O, 6] = sum(pad(x[b, c, 2 * p + i - 1, j], 0.0) * w[o, c, i, j], c, j, i=3)",
    "y[b, o, p] = acc[b, o, p] + z[o]",
    inputs="x: f32[B, C, 12, J], w: f32[O, C, 3, J], z: f32[O]",
    result="f32[B, O, 6]",
)


@pytest.mark.parametrize(
    "more",
    [
        ("flatten(i, inner=j)",),
        ("flatten(i, inner=j)", "flatten(c, inner=ij)", "tile(cij, size=16)"),
        ("flatten(c, inner=i)", "tile(ci, size=4)", "tile(j, size=2)"),
    ],
)
def test_reduced_indices_become_one_that_all_is_summed_along(more):
    sizes = {"B": 2, "O": 5, "C": 3, "J": 5}
    lines = ("tile(p, size=4)", "place(p.outer, level=grid)", "compute(acc, unit=matrix)")
    nest = require_right(lowered(REDUCED, *more, *lines, sizes=sizes, machine=WITH_TF32), sizes)
    (dot,) = statements(nest, Dot)
    assert len(dot.over) == 3 - len([m for m in more if m.startswith("flatten")])


def test_a_tensor_between_may_be_read_at_other_positions():
    spec = spec_of(
        "a[p, q] = x[p, q] * 2.0",
        "y[p, q] = a[p, q] + a[p, 0]",
        inputs="x: f32[P, Q]",
        result="f32[P, Q]",
    )
    lines = ("flatten(p, inner=q)", "kernel(a)", "tile(pq, size=4)", "place(pq.outer, level=grid)")
    sizes = {"P": 3, "Q": 5}
    require_right(lowered(spec, *lines, sizes=sizes, machine=WITH_TF32), sizes)


def test_rows_of_a_product_may_be_flattened_with_its_batch():
    sizes = workload("conv2d").checks[1]
    lines = ("flatten(b, inner=o)", "tile(p, size=1)", "place(p.outer, level=grid)")
    require_right(lowered(CONV, *lines, sizes=sizes, machine=WITH_TF32), sizes)


CHANNELS_LAST = spec_of(
    "acc[b, o, p, q] = sum(pad(x[b, p + i - 1, q + j - 1, c], 0.0) * w[i, j, o, c], c, i, j)",
    "y[b, p, q, o] = relu(acc[b, o, p, q] + g[o])",
    inputs="x: f32[B, P, Q, C], w: f32[3, 3, O, C], g: f32[O]",
    result="f32[B, P, Q, O]",
)


@pytest.mark.parametrize("more", [(), ("split_k(acc, over=c, parts=2)",), ("kernel(acc)",)])
def test_a_tensor_inside_gets_the_indices_adjacent(more):
    """All images of a batch are one side of a product, although the channels lie between in the sum's own order."""
    sizes = {"B": 3, "P": 5, "Q": 3, "C": 8, "O": 5}
    merged = ("flatten(p, inner=q)", "flatten(b, inner=pq)")
    lines = ("tile(bpq, size=16)", "tile(c, size=8)", "compute(acc, unit=matrix)", *more)
    nest = require_right(
        lowered(CHANNELS_LAST, *merged, *lines, sizes=sizes, machine=WITH_TF32), sizes
    )
    (dot,) = statements(nest, Dot)
    assert dot.over == ("c", "i", "j")
    made = formulate(CHANNELS_LAST, decisions(CHANNELS_LAST, *merged))
    assert [e.indices for e in made.equations] == [("bpq", "o"), ("bpq", "o")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("flatten(j, inner=p)", "`acc` runs over one of them"),
        ("flatten(q, inner=p)", "`y` does not have them adjacent, in order"),
        ("flatten(p, inner=p)", "`p` is both of them"),
        ("flatten(c, inner=p)", "`acc` runs over one of them"),
        ("flatten(p, inner=z)", "`z` is no index"),
        ("flatten(p)", "`flatten` needs `inner=`"),
    ],
)
def test_what_does_not_become_one_index_is_refused(line, message):
    with pytest.raises(KernelError, match=message):
        lowered(CONV, line, machine=WITH_TF32, sizes=workload("conv2d").checks[1])


def test_parts_of_ranges_do_not_become_one():
    spec = spec_of(
        "y[m, j] = sum(x[m, r, s] * w[j, r, s], s, r=range(0, j % 3 + 1))",
        inputs="x: f32[M, 3, 2], w: f32[6, 3, 2]",
        result="f32[M, 6]",
    )
    with pytest.raises(KernelError, match="a part of one of them is reduced"):
        lowered(spec, "flatten(r, inner=s)", sizes={"M": 4}, machine=WITH_TF32)


def test_an_index_that_was_flattened_is_gone():
    sizes = workload("conv2d").checks[1]
    with pytest.raises(KernelError, match="`p` is no index here"):
        lowered(CONV, "flatten(p, inner=q)", "tile(p, size=4)", machine=WITH_TF32, sizes=sizes)


def test_a_machine_without_registers_does_not_flatten():
    with pytest.raises(KernelError, match="`small` is of class `tiles`"):
        lowered(CONV, "flatten(p, inner=q)", sizes=workload("conv2d").checks[1])


def test_the_search_is_offered_pairs_that_stand_side_by_side():
    sizes = workload("conv2d").checks[-1]
    start = decisions(CONV, "tile(p, size=4)", "tile(q, size=8)", "place(p.outer, level=grid)")
    found = neighbours(CONV, start, WITH_TF32, sizes)
    (edit,) = [e for e in found if str(e) == "+ flatten(p, inner=q)"]
    changed = edit.apply(start)
    assert str(changed.find("tile", "pq")) == "tile(pq, size=32)"
    assert str(changed.find("place", "pq.outer")) == "place(pq.outer, level=grid)"
    assert len(changed.decisions) == 3
    lines = map(str, changed.decisions)
    require_right(lowered(CONV, *lines, sizes=sizes, machine=WITH_TF32), sizes)
    drop = Edit(changed.find("flatten", "p"), None)
    assert drop in neighbours(CONV, changed, WITH_TF32, sizes)
    assert drop.apply(changed).decisions == ()
    assert not any("flatten" in str(e) for e in neighbours(CONV, start, SMALL, sizes))


def test_a_flatten_that_leaves_no_product_of_matrices_is_not_for_the_matrix_unit():
    lines = ("flatten(b, inner=o)", "tile(p, size=1)", "compute(acc, unit=matrix)")
    with pytest.raises(KernelError, match="multiplies a matrix with a vector for each `bo`"):
        lowered(CONV, *lines, sizes=workload("conv2d").checks[1], machine=WITH_TF32)
