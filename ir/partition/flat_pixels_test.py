"""Convolutions with flat pixel indices: equal results, and no rewrite unless rows are long
enough."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.channels_last import convolution_parts
from ir.partition.constants import divided
from ir.partition.partition import partition
from ir.partition.rounded_operands import with_rounded_operands
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network
from ir.schedule import Decision
from ir.spec import Index
from ir.variant.flatten import flatten

FIXED = {"w"}


def net(at, size, taps, out, channels=32):
    """A convolution of images of `size` places a dimension, whose windows are at the positions `at`."""
    indices, filters = ("ijk"[: len(size)], "rst"[: len(size)])
    of = ", ".join(at)
    return parse_spec(f'''def net(x: f32[2, {channels}, {size_of(size)}], w: f32[16, {channels}, {size_of(taps)}]) \
        -> f32[2, 16, {size_of(out)}]:
    """Net."""
    z[b, o, {", ".join(indices)}]: [2, 16, {size_of(out)}] = \
sum(pad(x[b, c, {of}], 0.0) * w[o, c, {", ".join(filters)}], c, {", ".join(filters)})
    return z
''')


def size_of(sizes):
    return ", ".join(map(str, sizes))


def rounded(spec):
    return with_rounded_operands(spec, FIXED, ("z",))[0]


FULL = net(("i + r - 1", "j + s - 2"), (5, 7), (2, 3), (6, 9))
PHASES = net(("i + r - 1", "j + s - 1"), (5, 7), (2, 2), (6, 8))
SPACED = net(("i + r * 2 - 2", "j + s * 3 - 3"), (4, 5), (2, 2), (6, 8))
LATE = net(("i + r + 1", "j + s - 1"), (5, 7), (2, 2), (4, 8))
DEEP = net(("i + r - 2", "j + s - 1", "k + t - 1"), (3, 4, 5), (3, 2, 2), (5, 5, 6))


@pytest.mark.parametrize("spec", [FULL, PHASES, SPACED, LATE, DEEP])
def test_pixels_are_one_index(spec):
    made, shown = with_rounded_operands(spec, FIXED, ("z",))
    assert [e.target for e in made.equations] == ["operand", "operand_pixels", "operand_2", "z"]
    assert shown == {"operand_pixels": "operand"}
    (x,) = (r for r in made.equations[-1].reads() if r.tensor == "operand_pixels")
    assert x.pad is None and len(x.at) == 3
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(spec, inputs, {})["z"]
    np.testing.assert_allclose(evaluate(made, inputs, {})["z"], expected, rtol=5e-2, atol=5e-2)
    network = partition(made, {}, shown)
    assert [set(s.outputs) for s in network.steps][-1] == {"z"}
    assert len(network.steps) == 3
    found = evaluate_network(network, inputs)[0]
    np.testing.assert_allclose(found, expected, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize(
    "spec",
    [
        net(("i + r - 1", "j + s - 1"), (5, 7), (3, 3), (5, 7)),  # a row of zeros makes rows longer
        net(("i + r", "j + s"), (5, 7), (2, 2), (4, 6)),
        net(("i * 2 + r - 1", "j * 2 + s - 1"), (5, 7), (2, 2), (3, 8)),
        net(("i + r - 1", "j + s - 2"), (5, 7), (2, 3), (6, 9), channels=48),
        net(("i + r - 1",), (5,), (2,), (6,)),
    ],
)
def test_other_convolutions_stay_as_they_are(spec):
    assert rounded(spec) == spec


def test_what_a_kernel_computes_is_copied_by_that_kernel():
    spec = parse_spec('''def net(x: f32[2, 32, 5, 7], w: f32[16, 32, 2, 3]) -> f32[2, 16, 6, 9]:
    """Net."""
    y[b, c, u, v] = maximum(x[b, c, u, v], 0.0)
    z[b, o, i, j]: [2, 16, 6, 9] = sum(pad(y[b, c, i + r - 1, j + s - 2], 0.0) * w[o, c, r, s], c, r, s)
    return z
''')
    read = {r.tensor: r for r in rounded(spec).equations[-1].reads()}
    assert len(read["operand"].at) == 4


def test_filters_are_constants():
    parts = divided(FULL, {}, FIXED, rounded=("z",))
    assert [(t.name, t.dtype) for t in parts.before.outputs] == [("operand_2", "tf32")]


def test_it_is_a_convolution_still_whose_pixels_become_one_index_without_quotients():
    made = rounded(FULL)
    z = made.equations[-1]
    x, w, taps = convolution_parts(z)
    assert (x.tensor, w.tensor, taps) == ("operand_pixels", "operand_2", {"r", "s"})
    flat = flatten(made, Decision("flatten", "i", (("inner", "j"),)))
    (place,) = (r.at[1] for r in flat.equations[-1].reads() if r.tensor == "operand_pixels")
    assert place == Index("ij") + Index("r") * 9 + Index("s")
    inputs = random_inputs(FULL, {}, np.random.default_rng(2))
    expected = evaluate(made, inputs, {})["z"]
    np.testing.assert_allclose(
        evaluate(flat, inputs, {})["z"].reshape(expected.shape), expected, rtol=1e-6, atol=1e-6
    )
