"""Convolutions read rounded channels-last copies; results are unchanged except for the rounding."""

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.constants import divided
from ir.partition.partition import partition
from ir.partition.rounded_operands import with_rounded_operands
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network

FIXED = {"w", "v", "p"}
ALL = ("a", "z", "u")
FIRST = "a[b, o, i] = sum(pad(x[b, c, i + r - 1], 0.0) * w[o, c, r], c, r)"
SECOND = "z[b, q, i] = sum(pad(y[b, d, i + s - 1], 0.0) * v[q, d, s], d, s)"
PIXELS = "z[b, q, i] = sum(y[b, d, i] * p[q, d, 0], d)"


def net(*lines, channels=16, returned="z"):
    shapes = {
        "x": "2, 3, 8",
        "w": f"{channels}, 3, 3",
        "v": f"16, {channels}, 3",
        "p": f"16, {channels}, 1",
    }
    read = [t for t in shapes if any(f"{t}[" in line for line in lines)]
    head = ", ".join(f"{t}: f32[{shapes[t]}]" for t in read)
    results = ", ".join(f"f32[2, {channels if t == 'y' else 16}, 8]" for t in returned.split(", "))
    body = "".join(f"    {line}\n" for line in (*lines, f"return {returned}"))
    return parse_spec(f'def net({head}) -> ({results}):\n    """Net."""\n{body}')


def rounded(spec):
    return with_rounded_operands(spec, FIXED, ALL)[0]


def written(spec):
    return [e.target for e in spec.equations]


@pytest.mark.parametrize("line", [SECOND, PIXELS])
def test_operands_are_rounded_where_they_are_computed(line):
    spec = net(FIRST, "y[b, o, i] = maximum(a[b, o, i], 0.0)", line)
    made = rounded(spec)
    assert written(made) == ["a", "y", "operand", "operand_2", "z"]
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    np.testing.assert_allclose(
        evaluate(made, inputs, {})["z"], evaluate(spec, inputs, {})["z"], rtol=5e-2, atol=5e-2
    )
    steps = partition(made, {}).steps
    assert [set(s.outputs) for s in steps] == [{"operand"}, {"operand_2"}, {"z"}]
    assert [t.dtype for t in steps[-1].spec.inputs] == ["tf32", "tf32"]


def test_what_something_else_reads_is_stored_too():
    spec = net(FIRST, "y[b, o, i] = maximum(a[b, o, i], 0.0)", SECOND, returned="z, y")
    made = rounded(spec)
    network = partition(made, {})
    assert {"y", "operand"} in [set(s.outputs) for s in network.steps]
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    expected = evaluate(made, inputs, {})
    for t, found in zip(made.outputs, evaluate_network(network, inputs), strict=True):
        np.testing.assert_allclose(found, expected[t.name], rtol=1e-6, atol=1e-6)


def test_copies_of_fixed_filters_are_constants():
    spec = net(FIRST, "y[b, o, i] = maximum(a[b, o, i], 0.0)", SECOND)
    parts = divided(spec, {}, FIXED, rounded=ALL)
    assert [(t.name, t.dtype) for t in parts.before.outputs] == [("operand_2", "tf32")]
    assert "operand_2" in {t.name for t in parts.call.inputs}


def test_a_copy_is_made_once():
    first = "y[b, o, i] = maximum(a[b, o, i], 0.0)"
    again = "u[b, q, i] = sum(y[b, d, i] * p[q, d, 0], d)"
    made = rounded(net(FIRST, first, SECOND, again, returned="z, u"))
    assert written(made) == ["a", "y", "operand", "operand_2", "z", "operand_3", "u"]


def test_equal_copies_of_different_tensors_are_one_kernel():
    again = "u[b, q, i] = sum(pad(a[b, d, i + s - 1], 0.0) * w_2[q, d, s], d, s)"
    spec = parse_spec(f'''def f(x: f32[2, 3, 8], w: f32[16, 3, 3], v: f32[16, 16, 3], w_2: f32[16, 16, 3]) \
        -> (f32[2, 16, 8], f32[2, 16, 8]):
    """Two filters."""
    {FIRST}
    {SECOND.replace("y[", "a[")}
    {again}
    return z, u
''')
    network = partition(with_rounded_operands(spec, {*FIXED, "w_2"}, ALL)[0], {})
    of_filters = [s.spec for s in network.steps if {"v", "w_2"} & set(s.inputs)]
    assert len(of_filters) == 2 and len(set(of_filters)) == 1


def test_few_channels_and_inputs_of_the_network_stay_as_they_are():
    spec = net(FIRST, "y[b, o, i] = maximum(a[b, o, i], 0.0)", SECOND, channels=8)
    assert rounded(spec) == spec
    alone = parse_spec('''def alone(x: f32[2, 16, 8], v: f32[16, 16, 3]) -> f32[2, 16, 8]:
    """One."""
    z[b, o, i] = sum(pad(x[b, c, i + r - 1], 0.0) * v[o, c, r], c, r)
    return z
''')
    assert rounded(alone) == alone


def test_a_convolution_of_groups_stays_as_it_is():
    line = "z[b, q, i] = sum(pad(y[b, q // 16 * 16 + d, i + s - 1], 0.0) * v[q, d, s], d, s)"
    spec = net(FIRST, "y[b, o, i] = maximum(a[b, o, i], 0.0)", line)
    assert rounded(spec) == spec


DEPTHWISE = "a[b, c, i] = sum(pad(x[b, c, i + r - 1], 0.0) * f[c, r], r)"
ABOVE = "y[b, c, i] = maximum(a[b, c, i], 0.0)"
SCALED = "y[b, c, i] = a[b, c, i] * s[b, c]"


def separable(*lines, width=8, returned="z"):
    read = [
        f"{name}: f32[{shape}]"
        for name, shape in (("f", "16, 3"), ("p", "16, 16, 1"), ("v", "16, 16, 3"))
        if any(f"{name}[" in line for line in lines)
    ]
    results = ", ".join(f"f32[2, 16, {width}]" for _ in returned.split(", "))
    head = ", ".join((f"x: f32[2, 16, {width}]", *read))
    body = "".join(f"    {line}\n" for line in (*lines, f"return {returned}"))
    return parse_spec(f'def net({head}) -> ({results}):\n    """Net."""\n{body}')


@pytest.mark.parametrize("between", [(), (ABOVE,)], ids=["alone", "with an epilogue"])
def test_a_1x1_convolution_reads_a_depthwise_one_as_it_is(between):
    line = PIXELS if between else PIXELS.replace("y[", "a[")
    spec = separable(DEPTHWISE, *between, line)
    assert with_rounded_operands(spec, {"f", "p"}, ALL) == (spec, {})


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ((DEPTHWISE, ABOVE, SECOND), {}),  # taps would read it again
        ((DEPTHWISE, ABOVE, PIXELS), {"width": 6}),  # planes of 24 bytes
        ((DEPTHWISE, ABOVE, PIXELS), {"returned": "z, y"}),
        (
            (DEPTHWISE, "s[b, c] = sum(a[b, c, i], i)", SCALED, PIXELS),
            {},
        ),  # another kernel scales it
        (("a[b, c, i] = max(pad(x[b, c, i + r - 1], 0.0), r=3)", ABOVE, PIXELS), {}),
        (("a[b, c, i] = sum(x[b, c, r] * x[b, c, i], r)", ABOVE, PIXELS), {}),
    ],
    ids=["taps", "unaligned", "returned", "scaled", "pooling", "no window"],
)
def test_what_else_leads_to_a_1x1_convolution_is_rounded(lines, more):
    spec = separable(*lines, **more)
    made = with_rounded_operands(spec, {"f", "p", "v"}, ALL)[0]
    assert {"operand", "operand_2"} <= set(written(made))
