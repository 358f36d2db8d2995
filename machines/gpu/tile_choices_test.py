"""Roles of indices, and the cuts that follow from them."""

from dataclasses import replace

import pytest

from ir.autoschedule.autoschedule import autoschedule
from ir.parse.parse import parse_spec
from ir.schedule import Decision
from ir.sizes import bind
from ir.variant.flatten import flatten
from ir.verify import facts as facts_of
from machines.gpu.index_roles import roles
from machines.gpu.tile_choices import tile_choices
from testing.samples.samples import WITH_THREADS, spec_of, workload


def cuts(name: str, **sizes: int) -> dict[str, set[tuple[int, str]]]:
    """Of each index the tiles and their levels; (0, "") is the index as a whole."""
    spec = workload(name).spec
    choices = tile_choices(spec, roles(spec), bind(spec, sizes))
    return {
        index: {(c[0].option("size"), c[1].option("level")) if c else (0, "") for c in of}
        for index, of in zip(facts_of(spec).ranges, choices, strict=True)
    }


def test_roles_of_a_convolution():
    found = roles(workload("conv2d").spec)
    assert found.taps == {"i", "j"} and found.summed == {"c", "i", "j"}
    assert found.sides == ((("b", "p", "q"), ("o",)),)
    assert found.multiplied == {"b", "c", "i", "j", "o", "p", "q"}


def test_taps_beside_merged_positions_are_taps():
    spec = workload("conv2d").spec
    positions = flatten(spec, Decision("flatten", "p", (("inner", "q"),)))
    assert roles(positions).taps == {"i", "j"}
    taps = flatten(spec, Decision("flatten", "i", (("inner", "j"),)))
    assert not roles(taps).taps  # the one index that they became is none


def test_roles_of_jagged_ranges_and_batches():
    found = roles(workload("embedding_bag").spec)
    assert (found.jagged, found.bounding, found.stored) == ({"l"}, {"b"}, ("b", "d"))
    assert roles(workload("attention").spec).batch == {"h"}
    assert roles(workload("pffn").spec).batch == {"b"}


GROUPED = spec_of(
    "y[b, g, o, p]: [2, 3, 8, 30] = sum(x[b, g * 40 + c, p + i] * w[g * 8 + o, c, i], c=40, i=3)",
    inputs="x: f16[2, 120, 32], w: f16[24, 40, 3]",
    result="f32[2, 3, 8, 30]",
)


def test_the_channels_of_a_group_are_no_taps():
    found = roles(GROUPED)
    assert (found.taps, found.batch) == ({"i"}, {"g"})
    schedule = autoschedule(GROUPED, WITH_THREADS, {})
    tiles = {d.subject: d.option("size") for d in schedule.of("tile")}
    assert (tiles["g"], tiles["i"]) == (1, 1) and tiles.get("c", 40) >= 32


def test_of_a_short_side_the_longest_index_is_whole():
    spec = spec_of(
        "y[b, o, p, r]: [4, 8, 40, 2] = sum(x[b, c, p + i] * w[c, o, i * 2 + r], c=64, i=2)",
        inputs="x: f16[4, 64, 41], w: f16[64, 8, 4]",
        result="f32[4, 8, 40, 2]",
    )
    assert autoschedule(spec, WITH_THREADS, {}).find("tile", "o") is None


def test_a_batch_and_taps_go_one_at_a_time():
    found = cuts("conv2d", B=4, C=64, O=64, H=56, W=56)
    assert found["i"] == found["j"] == {(1, "loop")} and found["b"] == {(1, "grid")}
    assert found["p"] == {(1, "grid"), (2, "grid"), (4, "grid")}
    assert cuts("attention", H=4, M=1024, N=1024, D=128)["h"] == {(1, "grid")}


def test_sides_of_products_are_on_the_grid_and_what_they_sum_in_loops():
    found = cuts("matmul_bias_gelu", M=4096, N=4096, K=4096)
    assert found["m"] == found["n"] == {(t, "grid") for t in (64, 128, 256)}
    assert found["k"] == {(t, "loop") for t in (32, 64, 128)}
    small = cuts("matmul_bias_gelu", M=27, N=4096, K=64)
    assert small["m"] == {(0, ""), (16, "grid")} and (0, "") in small["k"]


def test_rows_are_whole_or_in_long_tiles():
    assert (0, "") in cuts("softmax", M=64, K=16384)["k"]
    long = cuts("softmax", M=64, K=16385)["k"]
    assert long == {(t, "loop") for t in (1024, 2048, 4096)}
    assert cuts("softmax", M=64, K=512)["m"] == {(t, "grid") for t in (1, 2, 4, 8, 16)}


def test_many_rows_that_no_cache_holds_have_larger_tiles():
    assert cuts("softmax", M=4096, K=1 << 18)["k"] == {(16384, "loop")}
    assert (16384, "loop") not in cuts("softmax", M=64, K=1 << 18)["k"]
    assert (16384, "loop") not in cuts("softmax", M=4096, K=1 << 17)["k"]
    assert cuts("softmax", M=4096, K=1 << 18)["m"] == {(1, "grid")}


def test_long_scans_have_larger_tiles():
    assert cuts("cumsum", M=4096, K=1 << 15)["k"] == {(4096, "loop")}
    assert (0, "") in cuts("cumsum", M=4096, K=4096)["k"]


def test_what_a_product_and_a_row_need_whole_is_whole():
    assert cuts("attention", H=4, M=1024, N=1024, D=128)["d"] == {(0, "")}


def test_elements_alone_are_cut_along_the_innermost_index():
    found = cuts("max_pool2d", N=8, C=8, H=112, W=112)
    assert found["n"] == found["c"] == {(1, "grid")}
    assert (0, "") in found["q"] and (16, "grid") in found["p"]


def test_an_index_alone_has_powers_of_two_below_its_size():
    spec = spec_of("y[m] = x[m] + 1.0", inputs="x: f32[M]", result="f32[M]")
    (choices,) = tile_choices(spec, roles(spec), {"M": 100})
    assert {c[0].option("size") for c in choices if c} == {32, 64}


def test_indices_of_a_tensor_between_launches_lie_side_by_side():
    spec = spec_of("z[i, j]: [M, 2 * K] = pad(x[i, j // 2], 0.0)", "y[m, k] = z[M - 1 - m, k + 1]")
    schedule = autoschedule(spec, WITH_THREADS, {"M": 4096, "K": 4096})
    placed = {d.subject for d in schedule.of("place") if d.option("level") == "grid"}
    assert {"i.outer", "j.outer", "m.outer", "k.outer"} <= placed


def test_of_a_side_the_index_that_fills_it_is_cut_and_short_ones_after_it_go_one_at_a_time():
    spec = spec_of(
        "y[n, o, u, r] = sum(x[n, c, u] * w[c, o, r], c)",
        inputs="x: f32[4, 64, 512], w: f32[64, 128, 2]",
        result="f32[4, 128, 512, 2]",
    )
    choices = tile_choices(spec, roles(spec), bind(spec, {}))
    found = dict(zip(facts_of(spec).ranges, choices, strict=True))
    assert [c[0].option("size") if c else 0 for c in found["r"]] == [1]
    assert {c[0].option("size") if c else 0 for c in found["o"]} >= {32, 64}


def test_rows_that_lie_side_by_side_are_reduced_many_at_a_time_and_little_of_each():
    spec = spec_of(
        "y[i, j] = max(x[i, k, j], k)", inputs="x: f32[128, 4096, 4095]", result="f32[128, 4095]"
    )
    choices = tile_choices(spec, roles(spec), bind(spec, {}))
    found = {
        i: {c[0].option("size") if c else 0 for c in of}
        for i, of in zip(facts_of(spec).ranges, choices, strict=True)
    }
    assert found["j"] >= {1, 16, 128} and found["k"] >= {32, 256, 4096 // 2}
    rows = spec_of("y[i] = max(x[i, k], k)", inputs="x: f32[128, 4096]", result="f32[128]")
    last = dict(zip(facts_of(rows).ranges, tile_choices(rows, roles(rows), {}), strict=True))
    assert min(c[0].option("size") if c else 4096 for c in last["k"]) >= 1024


def test_a_short_index_next_to_the_one_that_fills_a_side_may_be_whole():
    spec = spec_of(
        "y[n, o, u, r] = sum(x[n, c, u, r] * w[c, o], c)",
        inputs="x: f32[4, 64, 512, 10], w: f32[64, 128]",
        result="f32[4, 128, 512, 10]",
    )
    choices = tile_choices(spec, roles(spec), bind(spec, {}))
    found = dict(zip(facts_of(spec).ranges, choices, strict=True))
    assert [c[0].option("size") if c else 0 for c in found["r"]] == [0, 1]
    assert {c[0].option("size") for c in found["u"] if c} == {2, 4, 8, 16, 32, 64, 128}


NORM = """
def f(x: f32[2048, {n}]) -> f32[2048, {n}]:
    \"\"\"A norm over long rows.\"\"\"
    s[i] = sum(x[i, j] * x[i, j], j)
    y[i, j] = x[i, j] * rsqrt(s[i])
    return y
"""


@pytest.mark.parametrize(
    ("n", "tile", "threads"),
    [(65535, 32768, 1024), (49151, 16384, 512), (65536, 4096, 256), (1 << 18, 16384, 512)],
)
def test_long_rows_that_begin_within_a_vector_have_larger_tiles(n, tile, threads):
    schedule = autoschedule(parse_spec(NORM.format(n=n)), WITH_THREADS, {})
    assert schedule.find("tile", "j").number("size") == tile
    assert schedule.find("threads", "y").number("count") == threads


CHANNELS = """
def f(x: f32[8, 64, {n}]) -> f32[8, 64, {n}]:
    \"\"\"A norm over channels.\"\"\"
    s[i, k] = sum(x[i, j, k] * x[i, j, k], j)
    y[i, j, k] = x[i, j, k] * rsqrt(s[i, k])
    return y
"""


def test_a_norm_across_long_rows_takes_many_columns():
    schedule = autoschedule(parse_spec(CHANNELS.format(n=1 << 16)), WITH_THREADS, {})
    assert schedule.find("tile", "k").number("size") in (64, 128)


WINDOWS = """
def f(x: f32[2048, 65536]) -> f32[2048, 65537]:
    \"\"\"An average pooling with padding.\"\"\"
    y[i, j]: [2048, 65537] = sum(pad(x[i, j + k - 4], 0.0), k=8)
    return y
"""


def test_windows_that_reach_over_an_edge_have_more_than_one_warp():
    table = {"warps_per_unit": 64, "programs_per_unit": 32}
    machine = replace(WITH_THREADS, details={"gpu": table})
    schedule = autoschedule(parse_spec(WINDOWS), machine, {})
    assert schedule.find("threads", "y").number("count") >= 2 * machine.warp


def test_rows_of_images_that_are_reduced_are_held_whole_beside_few_rows():
    spec = spec_of(
        "c[b, o, p, q]: [4, 64, 62, 62] = sum(x[b, k, p + i, q + j] * w[o, k, i, j], k, i, j)",
        "y[b, o, p] = sum(c[b, o, p, q], q)",
        inputs="x: f32[4, 32, 64, 64], w: f32[64, 32, 3, 3]",
        result="f32[4, 64, 62]",
    )
    choices = tile_choices(spec, roles(spec), bind(spec, {}))
    found = dict(zip(facts_of(spec).ranges, choices, strict=True))
    assert () in found["q"]
    assert {c[0].option("size") for c in found["p"] if c} <= {1, 2, 4}


def test_contiguous_phases_are_stored_together_with_many_periods():
    spec = spec_of(
        "y[b, o, u, r, v, s] = x[b, r * 2 + s, o, u, v] + 1.0",
        inputs="x: f32[4, 4, 64, 96, 96]",
        result="f32[4, 64, 96, 2, 96, 2]",
    )
    choices = tile_choices(spec, roles(spec), bind(spec, {}))
    found = dict(zip(facts_of(spec).ranges, choices, strict=True))
    sizes = {i: {c[0].option("size") if c else 0 for c in of} for i, of in found.items()}
    assert sizes == {
        "b": {1},
        "o": {1},
        "u": {1, 2, 4, 8, 16},
        "r": {1},
        "v": {0, 16, 32, 64},
        "s": {0},
    }


def test_what_an_epilogue_reduces_is_no_tap_and_has_tiles_of_results():
    spec = spec_of(
        "c[b, o, p, q]: [4, 64, 254, 254] = sum(x[b, p + i, q + j, k] * w[o, i, j, k], i, j, k)",
        "y[b, o, p] = sum(c[b, o, p, q], q)",
        inputs="x: f32[4, 256, 256, 8], w: f32[64, 3, 3, 8]",
        result="f32[4, 64, 254]",
    )
    for merged in ((), (("j", "k"), ("i", "jk"))):
        for outer, inner in merged:
            spec = flatten(spec, Decision("flatten", outer, (("inner", inner),)))
        choices = tile_choices(spec, roles(spec), bind(spec, {}))
        found = dict(zip(facts_of(spec).ranges, choices, strict=True))
        sizes = {(c[0].option("size"), c[1].option("level")) if c else (0, "") for c in found["q"]}
        assert sizes == {(0, ""), (128, "loop"), (64, "loop"), (32, "loop")}


def test_images_that_an_epilogue_reduces_go_one_after_another():
    spec = spec_of(
        "c[b, o, d, p, q]: [4, 32, 22, 30, 30] = sum(x[b, d + h, p + i, q + j, k] * w[o, h, i, j, k], h, i, j, k)",
        "y[b, o, p, q] = min(c[b, o, d, p, q], d)",
        inputs="x: f32[4, 24, 32, 32, 4], w: f32[32, 3, 3, 3, 4]",
        result="f32[4, 32, 30, 30]",
    )
    choices = tile_choices(spec, roles(spec), bind(spec, {}))
    found = dict(zip(facts_of(spec).ranges, choices, strict=True))
    assert {c[0].option("size") if c else 0 for c in found["d"]} == {0, 1, 4, 16}
    assert () in found["q"] and 1 in {c[0].option("size") for c in found["p"] if c}
