"""Causal loop bounds: loops that end where a mask leaves nothing to reduce."""

import pytest

from ir.edits.edits import Edit, neighbours
from ir.errors import KernelError
from ir.nest.nest import Loop, LoopNest
from ir.parse.parse import parse_spec
from ir.print import expression_text
from testing.samples.right import require_right
from testing.samples.samples import SMALL, WITH_TF32, decisions, lowered, spec_of, statements


def attention(mask: str, reduction: str = "where({mask}, s[m, n] * rsqrt(f32(D)), -inf)"):
    return parse_spec(f'''def attention(q: f32[M, D], k: f32[N, D], v: f32[N, D]) -> f32[M, D]:
    """A."""
    s[m, n] = sum(q[m, d] * k[n, d], d)
    a[m, n] = {reduction.format(mask=mask)}
    mx[m] = max(a[m, n], n)
    p[m, n] = exp(a[m, n] - mx[m])
    l[m] = sum(p[m, n], n)
    o[m, e] = sum(p[m, n] * v[n, e], n)
    y[m, e] = o[m, e] / l[m]
    return y
''')


TILES = ("tile(m, size=8)", "tile(n, size=4)", "place(m.outer, level=grid)")
STREAM = ("online(mx, into=o)", "fuse(l, into=o)")
MATRIX = ("compute(s, unit=matrix)", "compute(o, unit=matrix)")
SIZES = {"M": 21, "N": 21, "D": 5}


def nest_of(spec, *lines: str, sizes=SIZES, machine=WITH_TF32) -> LoopNest:
    return require_right(lowered(spec, *lines, sizes=sizes, machine=machine), sizes)


def bounds(nest: LoopNest) -> set[tuple[str, str]]:
    loops = [s for s in statements(nest, Loop) if s.index == "n"]
    return {(expression_text(s.low.size), expression_text(s.high.size)) for s in loops}


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("n <= m", ("0", "minimum(N, m + 8)")),
        ("m >= n", ("0", "minimum(N, m + 8)")),
        ("n < m + 1", ("0", "minimum(N, m + 8)")),
        ("n < m + 3", ("0", "minimum(N, m + 10)")),
        ("n - m <= 0", ("0", "minimum(N, m + 8)")),
        ("~(n > m)", ("0", "minimum(N, m + 8)")),
        ("(n <= m) & (n > m - 6)", ("maximum(m + -5, 0) // 4 * 4", "minimum(N, m + 8)")),
        ("n >= m", ("maximum(m, 0) // 4 * 4", "N")),
        ("n <= m + (N - M)", ("0", "minimum(N, m + (8 + (N + -1 * M)))")),
    ],
)
@pytest.mark.parametrize("online", [STREAM, (), MATRIX + STREAM])
def test_masked_attention_does_only_what_is_left(mask, expected, online):
    nest = nest_of(attention(mask), *TILES, *online, "causal_bound(n, at=m)")
    assert bounds(nest) == {expected}


@pytest.mark.parametrize(
    "sizes",
    [
        {"M": 1, "N": 1, "D": 1},
        {"M": 9, "N": 30, "D": 3},
        {"M": 33, "N": 40, "D": 8},
    ],
)
@pytest.mark.parametrize("tiles", [(4, 16), (16, 4), (1, 8), (8, 1)])
def test_whatever_the_tiles(tiles, sizes):
    lines = (f"tile(m, size={tiles[0]})", f"tile(n, size={tiles[1]})", TILES[2])
    nest_of(attention("n <= m"), *lines, *STREAM, "causal_bound(n, at=m)", sizes=sizes)


@pytest.mark.parametrize("dtype", ["tf32", "tf32x3"])
def test_products_of_split_operands_are_cut_too(dtype):
    lines = (*MATRIX, *STREAM, f"precision(o, dtype={dtype})", "causal_bound(n, at=m)")
    nest_of(attention("n <= m"), *TILES, *lines)


@pytest.mark.parametrize(
    "reduction",
    [
        "where({mask}, s[m, n], -inf) * rsqrt(f32(D))",
        "where({mask}, s[m, n], -inf) / sqrt(f32(D))",
        "s[m, n] + where({mask}, 0.0, -inf)",
    ],
)
def test_masks_that_are_scaled_or_added(reduction):
    nest_of(attention("n <= m", reduction), *TILES, *STREAM, "causal_bound(n, at=m)")


@pytest.mark.parametrize(
    "equation",
    [
        "sum(where(n <= m, x[m, n], 0.0), n)",
        "max(where(n <= m, x[m, n], -inf), n)",
        "min(where(n > m, inf, x[m, n]), n)",
        "prod(where(n <= m, x[m, n], 1.0), n)",
    ],
)
def test_every_reduction(equation):
    spec = spec_of(f"y[m] = {equation}", inputs="x: f32[M, N]", result="f32[M]")
    nest = nest_of(spec, *TILES, "causal_bound(n, at=m)", sizes={"M": 21, "N": 30})
    assert bounds(nest) == {("0", "minimum(N, m + 8)")}


@pytest.mark.parametrize(
    "equation",
    [
        "sum(where(n <= m, x[m, n], 1.0), n)",
        "max(where(n <= m, x[m, n], 0.0), n)",
        "sum(x[m, n], n)",
        "sum(where(n <= 2 * m, x[m, n], 0.0), n)",
        "max(where(n <= m, x[m, n], -inf) * x[m, 0], n)",
        "sum(exp(where(n <= m, x[m, n], -1e9)), n)",
    ],
)
def test_what_no_mask_makes_identity_is_refused(equation):
    spec = spec_of(f"y[m] = {equation}", inputs="x: f32[M, N]", result="f32[M]")
    with pytest.raises(KernelError, match="the loop of `y` over `n` is not cut short at `m`"):
        nest_of(spec, *TILES, "causal_bound(n, at=m)", sizes={"M": 21, "N": 30})


def test_a_reduction_of_the_same_loop_that_is_not_masked_is_refused():
    spec = spec_of(
        "a[m] = sum(where(n <= m, x[m, n], 0.0), n)",
        "b[m] = sum(x[m, n], n)",
        "y[m] = a[m] + b[m]",
        inputs="x: f32[M, N]",
        result="f32[M]",
    )
    with pytest.raises(KernelError, match="the loop of `b`"):
        nest_of(spec, *TILES, "causal_bound(n, at=m)", sizes={"M": 21, "N": 30})


def test_there_must_be_a_loop_for_each_tile_of_the_other_index():
    for lines in (TILES[:1], TILES[1:2], ()):
        with pytest.raises(KernelError, match="no reduce over `n` runs in a loop"):
            nest_of(attention("n <= m"), *lines, "causal_bound(n, at=m)")
    with pytest.raises(KernelError, match="`small` is of class `tiles`"):
        nest_of(attention("n <= m"), *TILES, "causal_bound(n, at=m)", machine=SMALL)


def test_the_search_is_offered_cuts_where_there_are_masks():
    spec = attention("n <= m")
    found = {str(e) for e in neighbours(spec, decisions(spec, *TILES), WITH_TF32, SIZES)}
    assert "+ causal_bound(n, at=m)" in found
    start = decisions(spec, *TILES, "causal_bound(n, at=m)")
    assert "- causal_bound(n, at=m)" in {str(e) for e in neighbours(spec, start, WITH_TF32, SIZES)}
    plain = attention("d < m", "s[m, n]")
    found = neighbours(plain, decisions(plain, *TILES), WITH_TF32, SIZES)
    assert not any("causal_bound" in str(e) for e in found)


def test_a_cut_goes_with_the_tile_that_it_is_for():
    spec = attention("n <= m")
    start = decisions(spec, *TILES, "causal_bound(n, at=m)")
    assert not Edit(start.find("tile", "m"), None).apply(start).of("causal_bound")
    assert Edit(None, decisions(spec, "kernel(s)").decisions[0]).apply(start).of(
        "causal_bound"
    ) == (start.find("causal_bound", "n"),)


def part(bounds: str, k: str = "K"):
    return spec_of(
        f"y[m, k] = sum(x[m, r] * w[k, r], r=range({bounds}))",
        inputs=f"x: f32[M, 3], w: f32[{k}, 3]",
        result=f"f32[M, {k}]",
    )


WALKED = ("tile(m, size=8)", "tile(r, size=1)", "place(m.outer, level=grid)")
ON_GRID = "place(k.outer, level=grid)"


@pytest.mark.parametrize(
    ("ends", "tile"),
    [("0, k // 4 % 3 + 1", 4), ("k // 4 % 3, 3", 2), ("0, k % 3", 1), ("k % 2, k % 2 + 2", 1)],
)
def test_a_loop_runs_over_a_written_part_of_a_range(ends, tile):
    nest = nest_of(part(ends), *WALKED, f"tile(k, size={tile})", ON_GRID, sizes={"M": 9, "K": 21})
    (loop,) = statements(nest, Loop)
    assert f"{expression_text(loop.low.size)}, {expression_text(loop.high.size)}" == ends


@pytest.mark.parametrize(
    ("spec", "lines", "fault"),
    [
        (part("0, k // 4 % 3 + 1"), (*WALKED, "tile(k, size=8)"), "not the same in a tile of `k`"),
        (part("0, k // 4 % 3 + 1"), (*WALKED, "tile(k, size=3)"), "not the same in a tile of `k`"),
        (part("0, k % 3"), ("tile(k, size=1)", "tile(r, size=2)"), "not walked one at a time"),
        (part("0, k % 3"), ("tile(k, size=1)",), "not walked one at a time"),
        (part("0, k % 3 + 2"), (*WALKED, "tile(k, size=1)"), "nothing shows"),
        (part("k % 3 - 1, 3"), (*WALKED, "tile(k, size=1)"), "nothing shows"),
        (part("0, k + 1"), (*WALKED, "tile(k, size=1)"), "nothing shows"),
    ],
)
def test_a_part_of_a_range_is_refused_that_a_tile_has_not_all_of(spec, lines, fault):
    with pytest.raises(KernelError, match=fault):
        lowered(spec, *lines, ON_GRID, sizes={"M": 9, "K": 21}, machine=WITH_TF32)


def test_a_part_of_a_range_is_refused_where_all_rows_are_one_tile():
    with pytest.raises(KernelError, match="not the same in a tile of `k`"):
        lowered(part("0, k % 3"), *WALKED, sizes={"M": 9, "K": 21}, machine=WITH_TF32)


def test_as_many_tiles_as_rows_bound_a_part_of_known_size():
    nest = nest_of(part("0, k + 1", "3"), *WALKED, "tile(k, size=1)", ON_GRID, sizes={"M": 9})
    (loop,) = statements(nest, Loop)
    assert expression_text(loop.high.size) == "k + 1"
