"""Which tensors an emitted file takes, and where it reads sizes off."""

import pytest

from backends.triton.signature import parameters, size_sources
from testing.samples.samples import WITH_TF32, lowered, spec_of

PRODUCT = spec_of(
    "acc[m, n] = sum(x[m, k] * w[k, n], k)",
    "y[m, n] = acc[m, n] + 1.0",
    inputs="x: f32[M, K], w: f32[K, N]",
    result="f32[M, N]",
)


def nest(spec, *lines, **sizes):
    return lowered(spec, *lines, sizes=sizes, machine=WITH_TF32)


def test_inputs_come_first_then_workspace_then_outputs():
    made = nest(PRODUCT, "kernel(acc)", M=8, K=8, N=8)
    assert len(made.launches) == 2
    assert [(p.name, p.role) for p in parameters(made)] == [
        ("x", "input"),
        ("w", "input"),
        ("acc", "workspace"),
        ("y", "output"),
    ]


def test_an_input_has_its_place_whichever_launch_reads_it():
    made = nest(PRODUCT, "kernel(acc)", M=8, K=8, N=8)
    assert [p.name for p in made.launches[1].parameters] == ["acc", "y"]
    assert [p.name for p in parameters(made)][:2] == ["x", "w"]


def test_a_size_is_read_off_the_first_tensor_that_tells_it():
    assert size_sources(nest(PRODUCT, M=8, K=8, N=8)) == (
        ("M", "x", 0, 0),
        ("K", "x", 1, 0),
        ("N", "w", 1, 0),
    )


@pytest.mark.parametrize(
    ("shape", "read", "shift"), [("B + 1", "o[b] + o[b + 1]", -1), ("B", "o[b]", 0)]
)
def test_a_size_is_what_a_dimension_says_less_what_was_added(shape, read, shift):
    spec = spec_of(
        f"y[b, k] = x[b, k] * ({read})",
        inputs=f"o: f32[{shape}], x: f32[B, K]",
        result="f32[B, K]",
    )
    assert size_sources(nest(spec, B=4, K=8))[0] == ("B", "o", 0, shift)


def test_what_was_taken_off_is_added():
    spec = spec_of(
        "y[b, k] = x[b + 1, k] * o[b]",
        inputs="o: f32[B - 1], x: f32[B, K]",
        result="f32[B - 1, K]",
    )
    assert size_sources(nest(spec, B=4, K=8))[0] == ("B", "o", 0, 1)


def test_a_size_that_no_dimension_is_by_itself_is_read_off_another_tensor():
    spec = spec_of(
        "y[b, k] = x[b, k] * o[2 * b]", inputs="o: f32[2 * B], x: f32[B, K]", result="f32[B, K]"
    )
    assert size_sources(nest(spec, B=4, K=8))[0] == ("B", "x", 0, 0)
