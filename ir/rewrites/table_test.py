"""Each rewrite gives the documented text, and nothing where it does not apply."""

import pytest

from ir.rewrites import REWRITES
from ir.rewrites.cases import CASES, XC, R, S, X
from ir.rewrites.small_specs import WORKLOADS, equations, spec_of


def words(case):
    return f"{case[0]}: {case[3]}"


@pytest.mark.parametrize("case", CASES, ids=words)
def test_before_and_after(case):
    name, signature, result, lines, after = case
    found = REWRITES[name](spec_of(lines, signature, result))
    assert [line for s in found for line in equations(s)] == after


def test_a_sum_in_parts_ends_where_its_index_does():
    found = REWRITES["split_reduction"](spec_of("y[m] = sum(x[m, k], k)", X, S))
    assert equations(found[0]) == [
        "y_parts[m, k_part]: [M, (K + 127) // 128] = "
        "sum(pad(x[m, 128 * k_part + k_in], 0.0), k_in=128)",
        "y[m] = sum(y_parts[m, k_part], k_part)",
    ]
    assert "1024 * k_part + k_in" in equations(found[1])[0]


def test_terms_past_the_end_of_a_maximum_are_masked():
    found = REWRITES["split_reduction"](spec_of("y[m] = max(x[m, k], k)", X, S))
    assert (
        "where(128 * k_part + k_in < K, pad(x[m, 128 * k_part + k_in], 0.0), -inf)"
        in (equations(found[0])[0])
    )


def test_a_sum_that_ends_before_its_tensor_does_is_masked():
    spec = spec_of("y[m] = sum(x[m, k], k=200)", "x: f32[M, 256]", S)
    found = REWRITES["split_reduction"](spec)
    assert "where(128 * k_part + k_in < 200, " in equations(found[0])[0]


def test_every_rewrite_has_its_before_and_after():
    assert {case[0] for case in CASES} == set(REWRITES)


def test_reassociation_goes_there_and_back():
    (there,) = REWRITES["reassociate"](WORKLOADS["wukong_fm"].spec)
    assert equations(there) == [
        "t_again[b, n, i] = sum(f32(x[b, n, d]) * f32(x[b, i, d]), d)",
        "out[b, n, k] = sum(t_again[b, n, i] * f32(y[b, i, k]), i)",
    ]
    (back,) = REWRITES["reassociate"](there)
    assert equations(back)[-1].startswith("out[b, n, k] = sum(")
    assert "sum(f32(y[b, i, k]) * f32(x[b, i, d]), i)" in equations(back)[0]


def test_a_variance_takes_the_sum_that_is_there():
    (found,) = REWRITES["expand_square"](WORKLOADS["layer_norm"].spec)
    assert equations(found) == [
        "s[m] = sum(x[m, k], k)",
        "mean[m] = s[m] / K",
        "ss_squares[m] = sum(x[m, k] ** 2, k)",
        "ss[m] = ss_squares[m] - 2 * mean[m] * s[m] + K * mean[m] ** 2",
        "r[m] = rsqrt(ss[m] / K + eps)",
        "y[m, k] = (x[m, k] - mean[m]) * r[m] * g[k] + b[k]",
    ]


def test_the_row_factor_of_a_normalised_product_leaves_its_sum():
    (inlined,) = [
        s
        for s in REWRITES["inline_pointwise"](WORKLOADS["rmsnorm_matmul"].spec)
        if "xn" not in " ".join(equations(s))
    ]
    (found,) = REWRITES["hoist_factor"](inlined)
    assert "acc[m, n] = r[m] * acc_sum[m, n]" in equations(found)


def test_a_logarithm_of_a_softmax_needs_no_exponential_of_its_own():
    lines = "s[m] = sum(exp(x[m, k]), k); y[m, k] = log(exp(x[m, k]) / s[m])"
    (parts,) = REWRITES["split_logarithm"](spec_of(lines, X, R))
    (found,) = REWRITES["split_logarithm"](parts)
    assert equations(found)[-1] == "y[m, k] = x[m, k] - log(s[m])"


UNTOUCHED = {
    "a padded read is not inlined": (
        "inline_pointwise",
        "z[m] = x[m] + 1.0; y[m] = pad(z[m - 1], 0.0)",
        "x: f32[M]",
        "f32[M]",
    ),
    "a slice is not inlined into what reads all of it": (
        "inline_pointwise",
        "z[p] = x[p] * 2.0; s[()] = sum(z[q], q); y[p] = z[p] + s[()]",
        "x: f32[K], P=K - 2",
        "f32[P]",
    ),
    "borders are not inlined": (
        "inline_pointwise",
        "z[u] = b[u] * 2.0; y[m] = bucketize(x[m], z)",
        "x: f32[M], b: f32[U]",
        "i32[M]",
    ),
    "what one equation reads is not computed again": (
        "recompute",
        "t[m] = sum(x[m, k], k); y[m] = t[m] * t[m]",
        X,
        S,
    ),
    "sums over other ranges are not the same": (
        "share_equal",
        "t[m] = sum(x[m, k], k); u[m] = sum(z[m, k], k); y[m] = t[m] + u[m]",
        "x: f32[M, K], z: f32[M, K]",
        S,
    ),
    "whole numbers are not named": (
        "name_common",
        "y[m] = f32(i[m] + 1) * f32((i[m] + 1) * 2)",
        "i: i32[M]",
        S,
    ),
    "what has every index is no part": ("name_subexpression", "y[m, k] = exp(x[m, k]) * 2.0", X, R),
    "a factor with the summed index stays": (
        "hoist_factor",
        "y[m] = sum(c[k] * x[m, k], k)",
        "x: f32[M, K], c: f32[K]",
        "f32[M]",
    ),
    "a maximum has no factor to hoist that may be negative": (
        "hoist_factor",
        "y[m] = max(c[m] * x[m, k], k)",
        XC,
        S,
    ),
    "a term of a maximum with the reduced index stays": (
        "hoist_term",
        "y[m] = max(x[m, k] + c[k], k)",
        "x: f32[M, K], c: f32[K]",
        S,
    ),
    "a sum that two read keeps its factor outside": (
        "sink_factor",
        "u[m] = sum(x[m, k], k); v[m] = c[m] * u[m]; y[m] = v[m] + u[m]",
        XC,
        S,
    ),
    "a sum is not sunk where its factor is that sum": (
        "sink_factor",
        "u[m] = sum(x[m, k], k); y[m] = u[m] * u[m]",
        X,
        S,
    ),
    "a number is no common factor": (
        "collect_factor",
        "y[m, k] = x[m, k] * 2.0 + c[m] * 2.0",
        XC,
        R,
    ),
    "whole numbers are not distributed": (
        "distribute_factor",
        "y[m] = (i[m] + 1) * i[m]",
        "i: i32[M]",
        "i32[M]",
    ),
    "a factor that cannot be split stays": (
        "reassociate",
        "t[d, k] = sum(exp(x[i, d] + w[i, k]), i); y[n, k] = sum(x[n, d] * t[d, k], d)",
        "x: f32[M, D], w: f32[M, K]",
        "f32[M, K]",
    ),
    "a sum of a few is not in parts": (
        "split_reduction",
        "y[m] = sum(x[m, i], i)",
        "x: f32[M, 64]",
        S,
    ),
    "a sum of whole numbers is not in parts": (
        "split_reduction",
        "y[m] = sum(i[m, k], k)",
        "i: i32[M, K]",
        "i32[M]",
    ),
    "a jagged sum is not in parts": (
        "split_reduction",
        "y[b] = sum(x[l], l=range(o[b], o[b + 1]))",
        "x: f32[L], o: i32[M + 1]",
        S,
    ),
    "a reduction over one index has none inside": (
        "nest_reduction",
        "y[m] = sum(x[m, k], k)",
        X,
        S,
    ),
    "a maximum of sums is not one reduction": (
        "merge_reductions",
        "t[m, j] = sum(x[m, j, k], k); y[m] = max(t[m, j], j)",
        "x: f32[M, J, K]",
        S,
    ),
    "a term without the summed index has no sum of its own": (
        "split_sum",
        "y[m] = sum(x[m, k] + c[m], k)",
        XC,
        S,
    ),
    "sums over other indices are not joined": (
        "join_sums",
        "a[m] = sum(x[m, k], k); b[m] = sum(z[m, j], j); y[m] = a[m] + b[m]",
        "x: f32[M, K], z: f32[M, J]",
        S,
    ),
    "a deviation that varies along the sum stays": (
        "expand_square",
        "y[m] = sum((x[m, k] - c[k]) ** 2, k)",
        "x: f32[M, K], c: f32[K]",
        "f32[M]",
    ),
    "there is no origin where another equation computes the values": (
        "shift_square",
        "t[m, k] = exp(x[m, k]); y[m] = sum((t[m, k] - c[m]) ** 2, k)",
        XC,
        S,
    ),
    "deviations of a few are in one part": (
        "merge_deviations",
        "y[m] = sum((x[m, i] - c[m]) ** 2, i)",
        "x: f32[M, 99], c: f32[M]",
        S,
    ),
    "deviations of what every row has are in one part": (
        "merge_deviations",
        "y[m] = sum((x[k] - c[m]) ** 2, k)",
        "x: f32[K], c: f32[M]",
        S,
    ),
    "a sum of exponentials that is returned has no maximum taken off": (
        "subtract_maximum",
        "y[m] = sum(exp(x[m, k]), k)",
        X,
        S,
    ),
    "nor has one to which something is added": (
        "subtract_maximum",
        "s[m] = sum(exp(x[m, k]), k); y[m, k] = exp(x[m, k]) / (s[m] + 1.0)",
        X,
        R,
    ),
    "nor one of another row": (
        "subtract_maximum",
        "e[m, k] = exp(x[m, k]); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / pad(s[m - 1], 1.0)",
        X,
        R,
    ),
    "a maximum stays where nothing bounds the exponent": (
        "drop_maximum",
        "mx[m] = max(x[m, k], k); e[m, k] = exp(x[m, k] - mx[m]); s[m] = sum(e[m, k], k); "
        "y[m, k] = e[m, k] / s[m]",
        X,
        R,
    ),
    "a maximum stays where the bound is too far": (
        "drop_maximum",
        "z[m, k] = 90.0 * tanh(x[m, k]); mx[m] = max(z[m, k], k); "
        "e[m, k] = exp(z[m, k] - mx[m]); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m]",
        X,
        R,
    ),
    "a maximum stays that is read elsewhere": (
        "drop_maximum",
        "z[m, k] = tanh(x[m, k]); mx[m] = max(z[m, k], k); e[m, k] = exp(z[m, k] - mx[m]); "
        "s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m] + mx[m]",
        X,
        R,
    ),
    "a divisor for every element is divided by": (
        "multiply_reciprocal",
        "y[m, k] = x[m, k] / z[m, k]",
        "x: f32[M, K], z: f32[M, K]",
        R,
    ),
    "thirds are divided by": ("multiply_reciprocal", "y[m, k] = x[m, k] / 3.0", X, R),
    "a power of a power stays": ("reduce_power", "y[m, k] = x[m, k] ** 7", X, R),
    "a cosine is in no powers": ("in_powers_of_two", "y[m, k] = cos(x[m, k])", X, R),
    "two is not one": ("name_activation", "y[m, k] = 1.0 / (2.0 + exp(-x[m, k]))", X, R),
    "gelu has no other name": ("expand_activation", "y[m, k] = gelu(x[m, k])", X, R),
    "a sum of exponentials is no exponential": (
        "join_exponentials",
        "y[m, k] = exp(x[m, k]) + exp(c[m])",
        XC,
        R,
    ),
    "a logarithm of what may be negative stays": (
        "split_logarithm",
        "y[m, k] = log(x[m, k] / exp(c[m]))",
        XC,
        R,
    ),
    "a vector has one order": ("pack_input", "y[m] = x[m] + 1.0", "x: f32[M]", S),
    "an output keeps its order": ("reorder_tensor", "y[m, k] = exp(x[m, k])", X, R),
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_does_not_apply(case):
    name, lines, signature, result = UNTOUCHED[case]
    assert REWRITES[name](spec_of(lines, signature, result)) == []


def test_every_rewrite_has_a_place_where_it_does_not_apply():
    assert {case[0] for case in UNTOUCHED.values()} == set(REWRITES)
