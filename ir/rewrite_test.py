"""Every rewrite gives specs with the same values, and applies where it says it does."""

import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir.inputs import random_inputs
from ir.parse import parse_spec, parse_workload
from ir.print import spec_text
from ir.random_specs import sizes_for, specs
from ir.reference import evaluate
from ir.rewrite import REWRITES
from ir.spec import Spec

LIBRARY = sorted((pathlib.Path(__file__).parent / "library").glob("*.kir"))
WORKLOADS = {p.stem: parse_workload(p.read_text(), p.name) for p in LIBRARY}
SEEDS = st.integers(0, 2**32)


def same(spec: Spec, other: Spec, sizes, seed: int) -> None:
    """Both specs give the same values, up to what float64 rounds."""
    inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
    expected, found = evaluate(spec, inputs, sizes), evaluate(other, inputs, sizes)
    assert parse_spec(spec_text(other)) == other
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("rewrite", REWRITES)
@given(data=st.data(), seed=SEEDS)
def test_rewrites_of_the_library_keep_the_values(rewrite, data, seed):
    workload = WORKLOADS[data.draw(st.sampled_from(sorted(WORKLOADS)))]
    sizes = data.draw(sizes_for(workload.spec))
    for other in REWRITES[rewrite](workload.spec):
        same(workload.spec, other, sizes, seed)


@given(data=st.data(), seed=SEEDS)
def test_several_rewrites_one_after_the_other_keep_the_values(data, seed):
    spec = first = WORKLOADS[data.draw(st.sampled_from(sorted(WORKLOADS)))].spec
    sizes = data.draw(sizes_for(spec))
    for name in data.draw(st.lists(st.sampled_from(sorted(REWRITES)), max_size=4)):
        found = REWRITES[name](spec)
        spec = data.draw(st.sampled_from(found)) if found else spec
    same(first, spec, sizes, seed)


@given(data=st.data(), spec=specs(), seed=SEEDS)
def test_inlining_keeps_the_values_of_any_spec(data, spec, seed):
    sizes = data.draw(sizes_for(spec))
    for other in REWRITES["inline_pointwise"](spec):
        inputs = random_inputs(spec, sizes, np.random.default_rng(seed))
        found = evaluate(other, inputs, sizes)
        for name, array in evaluate(spec, inputs, sizes).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-12)


def spec_of(lines: str, signature: str, result: str) -> Spec:
    body = "".join(f"    {line.strip()}\n" for line in lines.split(";"))
    return parse_spec(f'def s({signature}) -> {result}:\n    """Doc."""\n{body}    return y\n')


def equations(spec: Spec) -> list[str]:
    return [line.strip() for line in spec_text(spec).splitlines() if "] =" in line]


BEFORE_AFTER = {
    "inline_pointwise": (
        spec_of("z[m] = exp(x[m]); y[m] = z[m] + z[m]", "x: f32[M]", "f32[M]"),
        ["y[m] = exp(x[m]) + exp(x[m])"],
    ),
    "hoist_factor": (
        spec_of("y[m] = sum(c[m] * x[m, k] * 2.0, k)", "x: f32[M, K], c: f32[M]", "f32[M]"),
        ["y_sum[m] = sum(x[m, k], k)", "y[m] = c[m] * 2.0 * y_sum[m]"],
    ),
    "reassociate": (
        WORKLOADS["wukong_fm"].spec,
        [
            "t_again[b, n, i] = sum(f32(x[b, n, d]) * f32(x[b, i, d]), d)",
            "out[b, n, k] = sum(t_again[b, n, i] * f32(y[b, i, k]), i)",
        ],
    ),
    "expand_square": (
        WORKLOADS["layer_norm"].spec,
        [
            "s[m] = sum(x[m, k], k)",
            "mean[m] = s[m] / K",
            "ss_squares[m] = sum(x[m, k] ** 2, k)",
            "ss[m] = ss_squares[m] - 2 * mean[m] * s[m] + K * mean[m] ** 2",
            "r[m] = rsqrt(ss[m] / K + eps)",
            "y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + b[k]",
        ],
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_before_and_after(name):
    before, after = BEFORE_AFTER[name]
    assert [equations(s) for s in REWRITES[name](before)] == [after]


def test_reassociation_undoes_itself():
    (there,) = REWRITES["reassociate"](WORKLOADS["wukong_fm"].spec)
    (back,) = REWRITES["reassociate"](there)
    assert equations(back)[-1].startswith("out[b, n, k] = sum(")
    assert "sum(f32(y[b, i, k]) * f32(x[b, i, d]), i)" in equations(back)[0]


def test_a_new_name_gives_way_to_one_that_is_taken():
    lines = "y_sum[m] = c[m] + 1.0; y[m] = sum(y_sum[m] * x[m, k], k)"
    spec = spec_of(lines, "x: f32[M, K], c: f32[M]", "f32[M]")
    (found,) = REWRITES["hoist_factor"](spec)
    assert equations(found)[-1] == "y[m] = y_sum[m] * y_sum_2[m]"


def test_a_quotient_is_hoisted():
    spec = spec_of("y[m] = sum(x[m, k] / c[m], k)", "x: f32[M, K], c: f32[M]", "f32[M]")
    (found,) = REWRITES["hoist_factor"](spec)
    assert equations(found)[-1] == "y[m] = y_sum[m] / c[m]"


def test_the_row_factor_of_a_normalised_product_leaves_its_sum():
    (inlined,) = [
        s for s in REWRITES["inline_pointwise"](WORKLOADS["rmsnorm_matmul"].spec)
        if "xn" not in spec_text(s)
    ]  # fmt: skip
    (found,) = REWRITES["hoist_factor"](inlined)
    assert "acc[m, n] = r[m] * acc_sum[m, n]" in equations(found)


UNTOUCHED = {
    "a padded read is not inlined": (
        "inline_pointwise",
        "z[m] = x[m] + 1.0; y[m] = pad(z[m - 1], 0.0)", "x: f32[M]", "f32[M]",
    ),
    "a slice is not inlined into what reads all of it": (
        "inline_pointwise",
        "z[p] = x[p] * 2.0; s[()] = sum(z[q], q); y[p] = z[p] + s[()]", "x: f32[K], P=K - 2", "f32[P]",
    ),
    "borders are not inlined": (
        "inline_pointwise",
        "z[u] = b[u] * 2.0; y[m] = bucketize(x[m], z)", "x: f32[M], b: f32[U]", "i32[M]",
    ),
    "a factor with the summed index stays": (
        "hoist_factor", "y[m] = sum(c[k] * x[m, k], k)", "x: f32[M, K], c: f32[K]", "f32[M]",
    ),
    "a maximum has no factor to hoist": (
        "hoist_factor", "y[m] = max(c[m] * x[m, k], k)", "x: f32[M, K], c: f32[M]", "f32[M]",
    ),
    "a factor that cannot be parted stays": (
        "reassociate",
        "t[d, k] = sum(exp(x[i, d] + w[i, k]), i); y[n, k] = sum(x[n, d] * t[d, k], d)",
        "x: f32[M, D], w: f32[M, K]", "f32[M, K]",
    ),
    "a deviation that varies along the sum stays": (
        "expand_square",
        "y[m] = sum((x[m, k] - c[k]) ** 2, k)", "x: f32[M, K], c: f32[K]", "f32[M]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNTOUCHED)
def test_does_not_apply(case):
    name, lines, signature, result = UNTOUCHED[case]
    assert REWRITES[name](spec_of(lines, signature, result)) == []
