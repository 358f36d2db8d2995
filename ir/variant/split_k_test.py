"""Split-K: partial reductions in parallel, then the whole."""

import pytest

from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.nest.nest import Dot, Loop, LoopNest
from ir.variant.variant import formulate
from testing.samples.right import require_formed_right
from testing.samples.samples import (
    SMALL,
    WITH_TF32,
    decisions,
    lowered,
    outline,
    spec_of,
    statements,
    workload,
)

SIZES = {"M": 21, "K": 70, "N": 18}
MATMUL = spec_of(
    "acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: bf16[M, K], w: bf16[K, N]",
    result="f32[M, N]",
)
TILES = (
    "tile(m, size=16)",
    "tile(n, size=16)",
    "tile(k, size=8)",
    "place(m.outer, level=grid)",
    "place(n.outer, level=grid)",
    "compute(acc, unit=matrix)",
)


def nest_of(*lines: str, spec=MATMUL, sizes=SIZES, machine=WITH_TF32) -> LoopNest:
    return require_formed_right(lowered(spec, *lines, sizes=sizes, machine=machine), sizes)


@pytest.mark.parametrize("parts", [2, 3, 4, 16])
def test_a_product_is_summed_in_parts(parts):
    nest = nest_of(*TILES, f"split_k(acc, over=k, parts={parts})")
    first, second = nest.launches
    assert [(g.index, g.tile) for g in first.grid] == [("acc_s", 1), ("m", 16), ("n", 16)]
    assert [p.name for p in first.parameters] == ["x", "w", "acc_parts"]
    assert outline(first.body)[0] == "Fill acc_parts"
    assert {"k", "Dot acc_parts"} <= set(outline(first.body)[1])
    assert [g.index for g in second.grid] == ["m", "n"]
    assert outline(second.body)[1] == ["acc_s", "Load acc_parts", "Reduction acc"]


@pytest.mark.parametrize("k", [1, 7, 8, 9, 64, 65])
def test_parts_may_be_short_or_empty(k):
    nest_of(*TILES, "split_k(acc, over=k, parts=4)", sizes={"M": 3, "K": k, "N": 5})


def test_the_second_stage_may_take_several_parts_at_a_time():
    nest = nest_of(*TILES, "split_k(acc, over=k, parts=4)", "tile(acc_s, size=2)")
    (loop,) = [s for s in nest.launches[1].statements() if isinstance(s, Loop)]
    assert (loop.index, loop.tile) == ("acc_s", 2)
    assert nest.launches[0].grid[0].tile == 1


@pytest.mark.parametrize("ends", [[], ["kernel(acc_bl)"]])
def test_parts_of_three_products(ends):
    spec = spec_of(
        "acc[m, n] = sum(x[m, k] * w[k, n], k)",
        "y[m, n] = acc[m, n] + 1.0",
        inputs="x: f32[M, K], w: f32[K, N]",
        result="f32[M, N]",
    )
    lines = (*TILES, "precision(acc, dtype=tf32x3)", "split_k(acc, over=k, parts=3)")
    nest = nest_of(*lines, *ends, spec=spec)
    assert [d.accumulate for d in statements(nest, Dot)] == [False, True, True]


ROWS = ("tile(m, size=4)", "tile(k, size=8)", "place(m.outer, level=grid)")


@pytest.mark.parametrize("reduction", ["sum", "max", "min", "prod"])
def test_every_reduction_of_rows(reduction):
    spec = spec_of(f"a[m] = {reduction}(x[m, k], k)", "y[m] = a[m] * 2.0", result="f32[M]")
    nest_of(*ROWS, "split_k(a, over=k, parts=3)", spec=spec, sizes={"M": 9, "K": 37})


def test_parts_of_a_sum_of_16_bits_are_kept_wide():
    spec = spec_of("y[m] = sum(x[m, k], k)", inputs="x: bf16[M, K]", result="bf16[M]")
    nest = nest_of(*ROWS, "split_k(y, over=k, parts=3)", spec=spec, sizes={"M": 9, "K": 37})
    assert nest.launches[0].parameters[-1].dtype == "f32"


def test_a_split_sum_stands_beside_a_whole_one():
    sizes = workload("rmsnorm_matmul").checks[-1]
    lines = (*TILES, "hoist(r, into=y)", "split_k(acc, over=k, parts=2)")
    nest_of(*lines, spec=workload("rmsnorm_matmul").spec, sizes=sizes)


def test_one_of_several_summed_indices_is_split():
    w = workload("conv2d")
    lines = (
        "tile(b, size=1)",
        "tile(p, size=1)",
        "place(b.outer, level=grid)",
        "place(p.outer, level=grid)",
        "tile(c, size=2)",
        "tile(q, size=4)",
        "split_k(acc, over=c, parts=2)",
    )
    for sizes in w.checks:
        nest_of(*lines, spec=w.spec, sizes=sizes)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("split_k(acc, over=k, parts=4)",), "`k` has no tile"),
        ((*TILES, "split_k(acc, over=k, parts=1)"), "`parts=1` are no parts"),
        ((*TILES, "split_k(acc, over=m, parts=2)"), "`acc` does not reduce `m`"),
        ((*TILES, "split_k(y, over=k, parts=2)"), "`y` is no reduction"),
        ((*TILES, "split_k(acc, over=k)"), "`split_k` needs `parts=`"),
    ],
)
def test_what_cannot_be_split_is_refused(lines, message):
    with pytest.raises(KernelError, match=message):
        nest_of(*lines)


def test_a_sum_that_shares_its_loop_is_not_split():
    lines = (*TILES, "hoist(r, into=y)", "fuse(ss, into=acc)", "split_k(acc, over=k, parts=2)")
    with pytest.raises(KernelError, match="shares its loop"):
        nest_of(*lines, spec=workload("rmsnorm_matmul").spec)


def test_a_machine_without_registers_does_not_split():
    with pytest.raises(KernelError, match="`small` is of class `tiles`"):
        nest_of(*TILES, "split_k(acc, over=k, parts=2)", machine=SMALL)


def test_the_search_is_offered_splits():
    found = {str(e) for e in neighbours(MATMUL, decisions(MATMUL, *TILES), WITH_TF32, SIZES)}
    assert {"+ split_k(acc, over=k, parts=2)", "+ split_k(acc, over=k, parts=8)"} <= found
    start = decisions(MATMUL, *TILES, "split_k(acc, over=k, parts=2)", "tile(acc_s, size=2)")
    found = neighbours(MATMUL, start, WITH_TF32, SIZES)
    texts = {str(e) for e in found}
    assert "split_k(acc, over=k, parts=2) -> split_k(acc, over=k, parts=4)" in texts
    assert "+ kernel(acc_parts)" not in texts
    drop = Edit(start.find("split_k", "acc"), None)
    assert drop in found
    assert set(drop.apply(start).decisions) == set(decisions(MATMUL, *TILES).decisions)
    found = neighbours(MATMUL, decisions(MATMUL, *TILES), SMALL, SIZES)
    assert not any("split_k" in str(e) for e in found)


def test_a_split_goes_with_the_tile_that_it_needs():
    start = decisions(MATMUL, *TILES, "split_k(acc, over=k, parts=2)")
    assert not Edit(start.find("tile", "k"), None).apply(start).of("split_k")


def test_an_index_whose_reduction_is_split_is_not_written_out():
    lines = ("tile(c, size=4)", "tile(i, size=1)", "split_k(acc, over=i, parts=2)", "unroll(i)")
    with pytest.raises(KernelError, match="`i` is not reduced over a known range"):
        nest_of(*lines, spec=workload("conv2d").spec, sizes=workload("conv2d").checks[1])


def test_a_part_of_a_range_is_not_split():
    spec = spec_of(
        "y[m, j] = sum(x[m, r] * w[j, r], r=range(0, j % 3 + 1))",
        inputs="x: f32[M, 3], w: f32[6, 3]",
        result="f32[M, 6]",
    )
    with pytest.raises(KernelError, match="a part of one"):
        nest_of("tile(r, size=1)", "split_k(y, over=r, parts=2)", spec=spec, sizes={"M": 4})


def test_the_tile_of_what_is_split_alone_gives_other_equations():
    def formed(m, k):
        lines = (f"tile(m, size={m})", f"tile(k, size={k})", "split_k(acc, over=k, parts=2)")
        return formulate(MATMUL, decisions(MATMUL, *lines))

    first = formed(8, 8)
    assert formed(16, 8) is first and formed(8, 16) != first
