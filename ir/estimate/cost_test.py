"""Rooflines, worked out by hand."""

import dataclasses

import pytest

from ir.estimate.cost import product_peak, roofline
from ir.parse.parse import parse_spec
from testing.samples.samples import SMALL, workload

# SMALL: 1e9 bytes/s; matrix 8e9 flop/s in 16 bits, 1e9 in f32; 4 processors.


def test_a_softmax_is_bound_by_its_bytes():
    found = roofline(workload("softmax").spec, SMALL, {"M": 64, "K": 128})
    moved = 2 * 64 * 128 * 4
    assert (found.bytes, found.flops, found.bound) == (moved, 0, "memory")
    assert found.us == pytest.approx(moved / 1e3)


def test_a_matrix_product_is_bound_by_its_unit():
    found = roofline(workload("matmul_bias_gelu").spec, SMALL, {"M": 128, "K": 64, "N": 32})
    flops = 2 * 128 * 64 * 32
    assert found.bytes == 2 * (128 * 64 + 64 * 32 + 32 + 128 * 32)
    assert (found.flops, found.bound) == (flops, "matrix")
    assert found.us == pytest.approx(flops / 8e3)


def test_without_a_matrix_unit_products_run_on_the_vector_unit():
    units = {"vector": SMALL.units["vector"]}
    bare = dataclasses.replace(SMALL, units=units)
    found = roofline(workload("matmul_bias_gelu").spec, bare, {"M": 128, "K": 64, "N": 32})
    assert found.us == pytest.approx(2 * 128 * 64 * 32 / 2e3)


def test_a_product_in_f32_may_be_made_of_three_in_tf32():
    matrix = SMALL.units["matrix"]
    rates = {**matrix.flops, "tf32": 4.5 * matrix.flops["f32"]}
    units = {**SMALL.units, "matrix": dataclasses.replace(matrix, flops=rates)}
    assert product_peak(dataclasses.replace(SMALL, units=units), "f32") == 1.5e9
    assert product_peak(SMALL, "f32") == 1e9


def test_a_product_whose_operands_the_spec_rounds_to_tf32_has_its_rate():
    matrix = SMALL.units["matrix"]
    rates = {**matrix.flops, "tf32": 4 * matrix.flops["f32"]}
    units = {**SMALL.units, "matrix": dataclasses.replace(matrix, flops=rates)}
    machine = dataclasses.replace(SMALL, units=units)
    text = 'def f(x: f32[M, K], w: f32[K, N]) -> f32[M, N]:\n    """Multiply."""\n'
    one, other = "    r[m, k] = tf32(x[m, k])\n", "    s[k, n] = tf32(w[k, n])\n"
    end = "    y[m, n] = sum(f32(r[m, k]) * {}, k)\n    return y\n"
    sizes = {"M": 512, "K": 512, "N": 512}
    whole = roofline(parse_spec(text + one + other + end.format("f32(s[k, n])")), machine, sizes)
    half = roofline(parse_spec(text + one + end.format("w[k, n]")), machine, sizes)
    assert whole.us == pytest.approx(1e6 * whole.flops / rates["tf32"])
    assert half.us > 1.2 * whole.us


def test_a_convolution_counts_its_window():
    found = roofline(workload("conv1d").spec, SMALL, {"B": 2, "C": 3, "O": 5, "L": 7})
    assert found.flops == 2 * 2 * 5 * 7 * 3 * 3


def test_a_table_counts_only_the_rows_that_are_gathered():
    sizes = {"V": 1000, "D": 8, "L": 16, "B": 4}
    found = roofline(workload("embedding_bag").spec, SMALL, sizes)
    rest = 4 * (16 + 5 + 4 * 8)
    assert 4 * 15 * 8 < found.bytes - rest < 4 * 16 * 8  # 16 draws of 1000 hardly ever meet
    small = roofline(workload("embedding_bag").spec, SMALL, {**sizes, "V": 10})
    assert small.bytes - rest == int(4 * 8 * 10 * (1 - 0.9**16))


def test_of_a_chain_of_products_the_largest_counts():
    sizes = {"B": 2, "N": 3, "D": 5, "K": 7}
    assert roofline(workload("wukong_fm").spec, SMALL, sizes).flops == 2 * 2 * 3 * 5 * 7
