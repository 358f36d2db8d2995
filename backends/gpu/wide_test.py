"""Which tensors need positions of 64 bits."""

import pytest

from backends.backend import BackendError
from backends.gpu.wide import wide_tensors
from testing.samples.samples import lowered, spec_of, workload

LARGE = {"M": 2**16, "K": 2**15}
ROWS = (
    "tile(m, size=4)",
    "place(m.outer, level=grid)",
    "tile(k, size=16)",
    "place(k.outer, level=loop)",
)


def made(spec, *lines, sizes):
    return lowered(spec, *lines, sizes=sizes)


@pytest.mark.parametrize(
    ("rows", "wide"), [(2**16 - 1, set()), (2**16, {"x", "y"}), (2**17, {"x", "y"})]
)
def test_a_tensor_is_wide_from_two_to_the_31_elements_on(rows, wide):
    spec = workload("softmax").spec
    assert wide_tensors(made(spec, *ROWS, sizes={**LARGE, "M": rows})) == wide


def test_a_dimension_that_is_too_long_is_refused():
    spec = spec_of("y[m] = x[m] * 2.0", inputs="x: f32[M]", result="f32[M]")
    lines = ("tile(m, size=64)", ROWS[1])
    assert not wide_tensors(made(spec, *lines, sizes={"M": 2**31 - 1}))
    with pytest.raises(BackendError, match="a dimension of `x` has 2147483648 positions"):
        wide_tensors(made(spec, *lines, sizes={"M": 2**31}))
