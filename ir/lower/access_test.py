"""The regions that reads load."""

import numpy as np
import pytest

from ir.errors import KernelError
from ir.nest.nest import Load
from ir.reference.inputs import random_inputs
from ir.reference.interpret import interpret
from ir.reference.reference import evaluate
from ir.sizes import value
from testing.samples.samples import SMALL, WITH_REGISTERS, lowered, spec_of, statements


def fault(spec, *lines, sizes) -> KernelError:
    with pytest.raises(KernelError) as caught:
        lowered(spec, *lines, sizes=sizes)
    return caught.value


def loads(spec, *lines, sizes):
    nest = lowered(spec, *lines, sizes=sizes)
    return nest.launches[0], statements(nest, Load, "x")


def test_a_plain_position_starts_at_its_tile():
    _, (load,) = loads(
        spec_of("y[m, k] = x[m, k]"),
        "tile(k, size=2)",
        "place(k.outer, level=grid)",
        sizes={"M": 3, "K": 5},
    )
    assert [(s.axis, s.terms, s.step) for s in load.region] == [
        ("m", (("m", 1),), 1),
        ("k", (("k", 1),), 1),
    ]


def test_a_strided_position_is_a_slice_with_a_step():
    spec = spec_of("y[k] = x[2 * k + 1]", inputs="x: f32[2*K]", result="f32[K]")
    _, (load,) = loads(spec, "tile(k, size=2)", sizes={"K": 5})
    assert (load.region[0].step, value(load.region[0].offset, {})) == (2, 1)


def test_a_window_has_room_for_all_that_its_indices_reach():
    launch, (load,) = loads(
        spec_of(
            "y[l] = sum(pad(x[2 * l + i - 1], 0.0), i=3)", inputs="x: f32[2*L]", result="f32[L]"
        ),
        "tile(l, size=4)",
        "place(l.outer, level=grid)",
        sizes={"L": 9},
    )
    (axis,) = launch.value("x").axes
    assert axis.name == "x_0"
    assert value(axis.extent, {}) == 2 * (4 - 1) + (3 - 1) + 1
    assert load.pad == 0.0


def test_a_fixed_position_has_no_axis():
    _, (load,) = loads(spec_of("y[m] = x[m, 0]", result="f32[M]"), sizes={"M": 3, "K": 5})
    assert [s.axis for s in load.region] == ["m", None]


def test_a_diagonal_is_loaded_through_a_window():
    spec = spec_of("y[m] = x[m, m]", inputs="x: f32[M, M]", result="f32[M]")
    _, (load,) = loads(spec, sizes={"M": 3})
    assert [s.axis for s in load.region] == ["m", "x_1"]


def test_a_read_through_an_index_tensor_has_rows():
    spec = spec_of("y[b, d] = x[i[b], d]", inputs="x: f32[V, D], i: i32[B]", result="f32[B, D]")
    _, (load,) = loads(spec, "tile(b, size=2)", sizes={"V": 5, "D": 3, "B": 4})
    assert [s.axis for s in load.region] == ["b", "d"]
    assert load.region[0].rows is not None and load.region[1].rows is None


def test_a_position_that_runs_backwards_has_rows():
    spec = spec_of("y[k] = x[K - 1 - k]", inputs="x: f32[K]", result="f32[K]")
    _, (load,) = loads(spec, sizes={"K": 5})
    assert load.region[0].rows is not None


@pytest.mark.parametrize("machine", [WITH_REGISTERS, SMALL])
@pytest.mark.parametrize("position", ["i[0]", "i[1]"])
def test_a_position_in_memory_may_be_one_number(position, machine):
    spec = spec_of(f"y[d] = x[{position}, d]", inputs="x: f32[V, D], i: i32[3]", result="f32[D]")
    sizes = {"V": 5, "D": 4}
    nest = lowered(spec, "tile(d, size=2)", sizes=sizes, machine=machine)
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    expected = evaluate(spec, inputs, sizes)["y"]
    np.testing.assert_array_equal(interpret(nest, inputs, sizes)["y"], expected)


def test_a_window_is_loaded_inside_the_loops_of_its_indices():
    found = fault(
        "conv1d",
        "tile(l, size=4)",
        "place(l.outer, level=loop)",
        "load(x, at=grid)",
        "pipeline(x, stages=2)",
        sizes={"B": 1, "C": 2, "O": 2, "L": 8},
    )
    assert "a window over `l` cannot be loaded outside its loop" in str(found)


@pytest.mark.parametrize(
    ("equation", "axes"),
    [
        ("y[b, c] = x[i[b, c], 0]", ["b", "c"]),
        ("y[b, c] = x[i[b, c], c + 1]", ["b", "c"]),
        ("y[b, c] = x[b + 1, i[b, c]]", ["b", "c"]),
        ("y[b, c] = x[i[b, c], i[b, c] + 1]", ["b", "c"]),
        ("y[b, c] = x[i[b, c] + 1, 2 * c]", ["b", "c"]),
        ("y[b, c] = x[b + c, i[b, c]]", ["x_0", "b", "c"]),
    ],
)
@pytest.mark.parametrize("lines", [(), ("tile(b, size=2)", "tile(c, size=3)")])
@pytest.mark.parametrize("machine", [WITH_REGISTERS, SMALL])
def test_rows_go_together_element_by_element(equation, axes, lines, machine):
    spec = spec_of(equation, inputs="x: f32[V, V], i: i32[B, C]", result="f32[B, C]")
    sizes = {"V": 13, "B": 3, "C": 5}
    nest = lowered(spec, *lines, sizes=sizes, machine=machine)
    (load,) = statements(nest, Load, "x")
    assert list(nest.launches[0].value(load.value).names) == axes
    inputs = random_inputs(spec, sizes, np.random.default_rng(1))
    inputs["i"] = inputs["i"] % 11
    expected = evaluate(spec, inputs, sizes)["y"]
    np.testing.assert_array_equal(interpret(nest, inputs, sizes)["y"], expected)
