"""What a program does, line by line: reductions, scans, loops, loads at their use."""

from __future__ import annotations

import pytest

from backends.backend import BackendError
from backends.registry import target
from backends.triton.testing.walks import emitted, wrong
from ir.errors import KernelError
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of, workload

H200 = target("h200")
SIZES = dict(M=21, K=70)
GRID = ("tile(m, size=4)", "place(m.outer, level=grid)")
LOOP = (*GRID, "tile(k, size=16)")


@pytest.fixture
def text(tmp_path):
    """The text of a kernel that gives what the reference gives, at two sets of sizes."""

    def make(spec, *lines, sizes=SIZES, **kwargs):
        spec = workload(spec).spec if isinstance(spec, str) else spec_of(*spec, **kwargs)
        nest = lower(spec, decisions(spec, *lines), H200, sizes)
        assert wrong(nest, H200, sizes, tmp_path) == ""
        return emitted(nest, H200, tmp_path).file.read_text()

    return make


@pytest.mark.parametrize("reduction", ["sum", "max", "min"])
@pytest.mark.parametrize("lines", [GRID, LOOP])
def test_reductions_do_not_count_what_lies_outside(text, reduction, lines):
    text([f"y[m] = {reduction}(x[m, k] - 3.0, k)"], *lines, result="f32[M]")


def test_a_sum_of_what_was_loaded_needs_no_mask(text):
    assert "tl.where" not in text(
        ["y[m] = sum(x[m, k] * 2.0 * x[m, k], k)"], *LOOP, result="f32[M]"
    )
    assert "tl.where(mask_k" in text(["y[m] = sum(x[m, k] + 2.0, k)"], *LOOP, result="f32[M]")


@pytest.mark.parametrize("reduction", ["any", "all"])
@pytest.mark.parametrize("lines", [GRID, LOOP])
def test_reductions_of_truth_values(text, reduction, lines):
    text([f"y[m] = {reduction}(x[m, k] < 2.5, k)"], *lines, result="b8[M]")


@pytest.mark.parametrize("reduction", ["argmax", "argmin"])
def test_positions_of_the_largest_and_the_least(text, reduction):
    spec = [f"y[m] = {reduction}(x[m, k], k)"]
    assert text(spec, *LOOP, result="i32[M]").count("in tl.range(") == 2
    found = text(spec, *LOOP, "online(y_top, into=y)", result="i32[M]")
    assert found.count("in tl.range(") == 1


@pytest.mark.parametrize("reduction", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("lines", [GRID, LOOP])
def test_scans(text, reduction, lines):
    text([f"y[m, k] = cum{reduction}(x[m, k], k)"], *lines, sizes=dict(M=6, K=35))


@pytest.mark.parametrize("options", ["reverse=True", "exclusive=True"])
@pytest.mark.parametrize("lines", [GRID, LOOP])
def test_scans_from_the_other_end_and_without_the_own_entry(text, options, lines):
    text([f"y[m, k] = cumsum(x[m, k], k, {options})"], *lines)


def test_a_scan_in_a_loop_carries_the_last_of_what_it_ran_through(text):
    """A reduction of what was loaded would be reduced by each thread alone till the loop ends."""
    found = text(["y[m, k] = cumsum(x[m, k], k)"], *LOOP)
    assert "y_carry += tl.sum(tl.where(offs_k[None, :] == k_at + 15, part_1, 0.0), 1)" in found
    assert "tl.sum(x" not in found


def test_a_scan_that_is_done_at_once_carries_nothing(text):
    assert "carry" not in text(["y[m, k] = cumsum(x[m, k], k)"], *GRID)


def test_a_scan_of_single_entries_adds_them_to_the_carry(text):
    found = text(["y[m, k] = cumsum(x[m, k], k)"], *GRID, "tile(k, size=1)", sizes=dict(M=6, K=35))
    assert "y_carry = y" in found and "tl.cumsum" not in found


def test_a_loop_of_few_known_scalars_is_written_out(text):
    spec = ["y[m, k] = sum(x[m, k, i], i)"]
    kwargs = dict(inputs="x: f32[M, K, 3]", result="f32[M, K]")
    assert "for i_at in tl.static_range(0, 3):" in text(spec, *GRID, "tile(i, size=1)", **kwargs)
    assert "static_range" not in text(spec, *GRID, "tile(i, size=2)", **kwargs)
    staged = text(spec, *GRID, "tile(i, size=1)", "pipeline(x, stages=2)", **kwargs)
    assert "tl.range(0, 3, num_stages=2):" in staged


def test_loops_say_how_deep_their_loads_are_staged(text):
    spec = ["y[m] = sum(x[m, k], k)"]
    assert "num_stages=1)" in text(spec, *LOOP, result="f32[M]")
    staged = text(spec, *LOOP, "pipeline(x, stages=3)", result="f32[M]")
    assert "for k_at in tl.range(0, K, 16, num_stages=3):" in staged


def test_bounds_in_data_are_loaded(text):
    sizes = dict(V=9, D=20, L=64, B=12)
    lines = ("tile(b, size=1)", "tile(l, size=8)", "place(b.outer, level=grid)")
    found = text("embedding_bag", *lines, sizes=sizes)
    assert "l_low = tl.load(offsets_ptr + b_at)" in found
    assert "l_high = tl.load(offsets_ptr + b_at + 1)" in found
    assert "for l_at in tl.range(l_low, l_high, 8" in found


def test_borders_are_searched_by_halving_whatever_their_number(text):
    lines = ("tile(m, size=8)", "place(m.outer, level=grid)")
    spec = ["y[m] = bucketize(x[m], b)"]
    found = text(
        spec, *lines, inputs="x: f32[M], b: f32[U]", result="i32[M]", sizes=dict(M=20, U=13)
    )
    assert "STEPS_B=U.bit_length()" in found
    known = text(spec, *lines, inputs="x: f32[M], b: f32[3]", result="i32[M]", sizes=dict(M=20))
    assert "STEPS_B=2," in known


def test_a_kernel_without_inputs_is_made_where_the_device_is(text):
    found = text(["y[i] = f32(i) * 2.0"], inputs="", result="f32[4]", sizes={})
    assert 'device="cuda"' in found


def test_a_product_in_f64_is_refused(text):
    spec = ["acc[m, n] = sum(x[m, k] * w[k, n], k)", "y[m, n] = acc[m, n] + 1.0"]
    with pytest.raises((BackendError, KernelError)):
        text(
            spec,
            "compute(acc, unit=matrix)",
            inputs="x: f64[M, K], w: f64[K, N]",
            result="f64[M, N]",
            sizes=dict(M=16, N=16, K=16),
        )


@pytest.mark.parametrize("dtype", ["f32", "tf32", "tf32x3", "bf16"])
def test_products_in_every_precision(text, dtype):
    spec = ["acc[m, n] = sum(x[m, k] * w[k, n], k)", "y[m, n] = acc[m, n] + 1.0"]
    lines = (
        "tile(m, size=16)",
        "tile(n, size=16)",
        "tile(k, size=16)",
        "place(m.outer, level=grid)",
        "compute(acc, unit=matrix)",
    )
    decided = () if dtype == "f32" else (f"precision(acc, dtype={dtype})",)
    inputs = "x: f32[M, K], w: f32[K, N]" if dtype != "bf16" else "x: bf16[M, K], w: bf16[K, N]"
    if dtype == "bf16":
        spec = ["acc[m, n] = sum(f32(x[m, k]) * f32(w[k, n]), k)", spec[1]]
    text(spec, *lines, *decided, inputs=inputs, result="f32[M, N]", sizes=dict(M=21, N=18, K=37))


@pytest.mark.parametrize("bulk", [(), ("copy(x, by=bulk)",)])
@pytest.mark.parametrize("term", ["x[m, k]", "x[m + 1, k]"])
def test_rows_beyond_an_index_that_the_tensor_has_do_not_count(text, bulk, term):
    """TMA fills with 0 outside the tensor, which ends later here."""
    found = text(
        [f"s[k] = sum({term}, m=M)", "y[k] = s[k] + w[0]"],
        "tile(k, size=8)",
        "tile(m, size=16)",
        "place(k.outer, level=grid)",
        "pipeline(x, stages=2)",
        *bulk,
        inputs="x: f32[M + 5, K], w: f32[M]",
        result="f32[K]",
        sizes=dict(M=21, K=40),
    )
    assert ("tl.where(mask_m[:, None], x" in found) == bool(bulk)
