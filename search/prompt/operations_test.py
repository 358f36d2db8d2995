"""The kinds of operations are found from equations."""

import pytest

from search.prompt.operations import OPERATIONS, operations
from testing.samples.samples import KERNELS, RECURRENT, spec_of, workload

EXPECTED = {
    "attention": "product batched chain reduction softmax special",
    "conv1d": "product window",
    "cumsum": "scan",
    "embedding_bag": "reduction gather jagged",
    "layer_norm": "reduction norm special",
    "map_id": "gather search",
    "max_pool2d": "reduction window",
    "pairwise_dot": "product batched mask",
    "pffn": "product batched chain reduction norm special",
    "rmsnorm_matmul": "product reduction norm special",
    "softmax": "reduction softmax special",
    "wukong_fm": "product batched chain",
}


@pytest.mark.parametrize("kernel", EXPECTED)
def test_a_kernel_of_the_library(kernel):
    assert set(EXPECTED[kernel].split()) <= set(operations(workload(kernel).spec))


@pytest.mark.parametrize("kernel", [*KERNELS, *RECURRENT])
def test_every_kernel_has_kinds_each_once_and_in_order(kernel):
    found = operations(workload(kernel).spec)
    assert found and list(found) == [o for o in OPERATIONS if o in found]


@pytest.mark.parametrize("kernel", RECURRENT)
def test_recurrences_are_found(kernel):
    assert "recurrence" in operations(workload(kernel).spec)


def test_arithmetic_at_each_place_is_pointwise():
    assert operations(spec_of("y[m, k] = x[m, k] * 2.0 + 1.0")) == ("pointwise",)
    assert operations(spec_of("y[m, k] = exp(x[m, k])")) == ("special", "pointwise")


def test_a_sum_is_no_product():
    spec = spec_of("s[m] = sum(x[m, k], k)", "y[m, k] = x[m, k] - s[m]")
    assert operations(spec) == ("reduction",)


def test_a_scatter_and_random_numbers():
    spec = spec_of("y[i[m], k] += x[m, k]", inputs="x: f32[M, K], i: i32[M]", result="f32[N, K]")
    assert "scatter" in operations(spec)
    spec = spec_of("y[m, k] = x[m, k] * uniform(3, m * K + k)")
    assert "random" in operations(spec)
