"""Which sums a matrix unit takes, and how their factors divide into operands."""

import pytest

from ir.contraction import contraction, factors, indices, product
from ir.print import expression_text
from testing.samples.samples import spec_of, workload


def found(name: str, target: str):
    return contraction(workload(name).spec.equation(target))


def equation(text: str, inputs: str = "x: f32[M, K], w: f32[K, N]", result: str = "f32[M, N]"):
    return spec_of(text, inputs=inputs, result=result).equations[0]


def test_a_matrix_product_has_rows_columns_and_a_sum():
    c = found("matmul_bias_gelu", "acc")
    assert (c.batch, c.rows, c.columns, c.over) == ((), ("m",), ("n",), ("k",))
    assert (expression_text(c.a), expression_text(c.b)) == ("f32(x[m, k])", "f32(w[k, n])")


def test_an_index_of_both_sides_and_the_result_is_a_batch():
    c = found("attention", "s")
    assert (c.batch, c.rows, c.columns, c.over) == (("h",), ("m",), ("n",), ("d",))


def test_a_convolution_sums_over_channels_and_window():
    c = found("conv2d", "acc")
    assert c.over == ("c", "i", "j")
    assert {*c.rows, *c.columns} == {"b", "o", "p", "q"}


def test_a_square_of_one_read_twice_is_a_product():
    c = found("pairwise_dot", "z")
    assert (c.batch, c.rows, c.columns) == (("b",), ("i",), ("j",))


def test_further_factors_go_to_the_side_that_has_their_indices():
    c = contraction(
        equation(
            "y[m, n] = sum(x[m, k] * g[k] * w[k, n] * h[n], k)",
            inputs="x: f32[M, K], g: f32[K], w: f32[K, N], h: f32[N]",
        )
    )
    assert (expression_text(c.a), expression_text(c.b)) == ("x[m, k] * g[k]", "w[k, n] * h[n]")


@pytest.mark.parametrize(
    "text",
    [
        "y[m, n] = max(x[m, k] * w[k, n], k)",  # no sum
        "y[m, n] = sum(x[m, k] + w[k, n], k)",  # no product
        "y[m, n] = sum(x[m, k] * w[k, n] * g[m, n], k)",  # a factor of both sides
        "y[m, n] = sum(exp(x[m, k]) * exp(w[k, n]), k)",  # nothing that is a plain read
    ],
)
def test_other_sums_are_none(text):
    inputs = "x: f32[M, K], w: f32[K, N]" + (", g: f32[M, N]" if "g[" in text else "")
    assert contraction(equation(text, inputs)) is None


def test_a_sum_over_one_read_is_none():
    assert contraction(equation("y[m] = sum(x[m, k], k)", "x: f32[M, K]", "f32[M]")) is None


def test_a_factor_that_lacks_the_summed_index_does_not_make_a_product():
    text = "y[m, n] = sum(x[m, k] * g[n], k)"
    assert contraction(equation(text, "x: f32[M, K], g: f32[N]")) is None


def test_a_result_without_columns_is_a_matrix_times_a_vector():
    c = contraction(equation("y[m] = sum(x[m, k] * g[k], k)", "x: f32[M, K], g: f32[K]", "f32[M]"))
    assert (c.rows, c.columns) == (("m",), ())


def test_factors_multiply_back_to_the_product():
    body = equation("y[m, n] = sum(x[m, k] * (w[k, n] * x[m, k]) * 2.0, k)").value.body
    parts = factors(body)
    assert [expression_text(p) for p in parts] == ["x[m, k]", "w[k, n]", "x[m, k]", "2.0"]
    assert factors(product(parts)) == parts
    assert indices(body) == ("m", "k", "n")
