"""Pointwise arithmetic as it is written, and that it means what the reference does."""

from __future__ import annotations

import pytest

from backends.registry import target
from backends.triton.testing.walks import emitted, wrong
from ir.lower.lower import lower
from testing.samples.samples import decisions, spec_of

H200 = target("h200")
SIZES = dict(M=21, K=40)
ROWS = ("tile(m, size=4)", "place(m.outer, level=grid)")


@pytest.fixture
def lines(tmp_path):
    """The lines of the kernel for some equations; `right` runs it against the reference too."""

    def make(*equations, right=True, rows=ROWS, **kwargs):
        spec = spec_of(*equations, **kwargs)
        nest = lower(spec, decisions(spec, *rows), H200, SIZES)
        if right:
            assert wrong(nest, H200, SIZES, tmp_path) == ""
        text = emitted(nest, H200, tmp_path).file.read_text()
        body = text[text.index("_0(\n") : text.index("\ndef launch")]
        return [line.strip() for line in body.splitlines() if not line.strip().startswith("#")]

    return make


def last(found, name="y"):
    """What the last line that assigns a variable says."""
    return [ln.removeprefix(f"{name} = ") for ln in found if ln.startswith(f"{name} = ")][-1]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("relu(x[m, k])", "tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)"),
        ("tanh(x[m, k])", "libdevice.tanh(x)"),
        ("x[m, k] ** 2", "x * x"),
        ("abs(x[m, k]) ** 3.0", "libdevice.pow(tl.abs(x), 3.0)"),
        ("silu(x[m, k])", "x * tl.sigmoid(x)"),
        ("-x[m, k] * 2.0", "(-x) * 2.0"),
        ("x[m, k] - (x[m, k] - 1.0)", "x - (x - 1.0)"),
        ("exp(x[m, k])", "tl.exp(x)"),
        (
            "minimum(x[m, k], 0.5) + floor(x[m, k])",
            "tl.minimum(x, 0.5, propagate_nan=tl.PropagateNan.ALL) + tl.floor(x)",
        ),
        ("sign(x[m, k] + 1.0)", "tl.where(part_1 > 0.0, 1.0, tl.where(part_1 < 0.0, -1.0, 0.0))"),
        ("log1p(2.0) * x[m, k]", "libdevice.log1p(tl.cast(2.0, tl.float32)) * x"),
        ("x[m, k] % 2.0", "float_floor_modulo(x, 2.0)"),
        ("where(x[m, k] > -1.0, x[m, k], -inf)", 'tl.where(x > (-1.0), x, float("-inf"))'),
    ],
)
def test_functions(lines, expression, text):
    assert last(lines(f"y[m, k] = {expression}")) == text


def test_what_is_read_twice_has_a_name(lines):
    found = lines("y[m, k] = gelu(x[m, k] + 1.0)")
    assert last(found, "part_1") == "x + 1.0"
    assert last(found) == "0.5 * part_1 * (1.0 + tl.erf(part_1 * 0.7071067811865476))"
    assert not [ln for ln in lines("y[m, k] = gelu(x[m, k])") if "part" in ln]


def test_operands_meet_in_the_wider_dtype(lines):
    kwargs = dict(inputs="a: f16[M, K], i: i32[M, K]", result="f16[M, K]")
    found = lines("y[m, k] = a[m, k] + i[m, k] + 1", **kwargs)
    assert last(found) == "((a.to(tl.float32) + i.to(tl.float32)) + 1.0).to(tl.float16)"


def test_products_of_half_formats_stay_in_them_unless_cast(lines):
    kwargs = dict(inputs="a: f16[M, K], b: f16[M, K]", result="f32[M, K]")
    assert "float32" in last(lines("y[m, k] = f32(a[m, k]) * f32(b[m, k])", **kwargs))


def test_comparisons_and_truth_values(lines):
    found = lines(
        "y[m, k] = (x[m, k] > 0.5) & ~(x[m, k] > 1.0) | (x[m, k] < -1.0)", result="b8[M, K]"
    )
    assert last(found) == "((x > 0.5) & (~(x > 1.0))) | (x < (-1.0))"


def test_indices_and_sizes_are_numbers(lines):
    found = lines("y[m, k] = x[m, k] + f32(m * K + k)")
    assert last(found) == "x + ((offs_m[:, None] * K) + offs_k[None, :]).to(tl.float32)"
    scalar = lines("y[m, k] = x[m, k] + f32(m)", rows=("tile(m, size=1)", ROWS[1]))
    assert last(scalar) == "x + tl.cast(m_at, tl.float32)"


def test_whole_numbers_that_are_not_negative_divide_as_they_are(lines):
    found = lines("y[m, k] = x[m, k] + f32(k // 3) + f32((m + k) % 5)")
    assert "offs_k // 3" in last(found).replace("[None, :]", "")
    assert "floor_" not in last(found)


def test_others_are_rounded_down(lines):
    kwargs = dict(inputs="a: i32[M, K]", result="i32[M, K]")
    found = lines("y[m, k] = a[m, k] // 7 + a[m, k] % 3 + (k - 5) // 2 + (k - 5) % -3", **kwargs)
    assert last(found).count("floor_divide(") == last(found).count("floor_modulo(") == 2


def test_the_exponential_of_a_difference_is_a_power_of_two(lines):
    found = lines("mx[m] = max(x[m, k], k)", "y[m, k] = exp(x[m, k] - mx[m])")
    assert last(found) == "tl.exp2(x * LOG2_E - mx[:, None] * LOG2_E)"


def test_its_factor_waits(lines):
    equations = (
        "a[m, k] = x[m, k] * 0.5",
        "mx[m] = max(a[m, k], k)",
        "y[m, k] = exp(a[m, k] - mx[m])",
    )
    found = lines(*equations)
    assert " * LOG2_E) - mx[:, None] * LOG2_E)" in last(found)
    assert not [ln for ln in found if ln.startswith("a = ")]


def test_other_exponents_are_left_alone(lines):
    assert last(lines("y[m, k] = exp(x[m, k] - 1.0)")) == "tl.exp(x - 1.0)"
    twice = lines("y[m, k] = exp(x[m, k] - w[m, k])", inputs="x: f32[M, K], w: f32[M, K]")
    assert last(twice) == "tl.exp(x - w)"


def test_what_has_fewer_axes_is_spread(lines):
    found = lines("y[m, k] = w[m] * 2.0 + x[m, k]", inputs="w: f32[M], x: f32[M, K]")
    assert last(found) == "(w[:, None] * 2.0) + x"


@pytest.mark.parametrize(
    ("condition", "known"), [("~(0 <= 0)", "False"), ("~(1 < 0)", "True"), ("2 != 2", "False")]
)
def test_a_comparison_of_constants_is_its_result(lines, condition, known):
    found = lines(f"y[m, k] = where({condition}, x[m, k], 1.0)")
    assert last(found) == f"tl.where({known}, x, 1.0)" and "~" not in "".join(found)
