"""Chains of convolutions in zero-padded planes: equal results, and unchanged specs where the
rewrite is illegal or does not pay."""

import re

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.flat_chains import with_flat_chains
from ir.partition.partition import partition
from ir.partition.planes import Image, Padded
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.reference.stepwise import evaluate as evaluate_network
from ir.spec import Index

H, W = 20, 24
FIRST = (
    f"a[b, o, i, j]: [2, 32, {H}, {W}] = sum(pad(x[b, n, i + r - 1, j + s - 1], 0.0) * f[o, n, r, s], n, r, s)",
    "y[b, o, i, j] = relu(a[b, o, i, j] + g[o])",
    "operand[b, i, j, o] = tf32(y[b, o, i, j])",
)
SECOND = (
    f"z[b, o, i, j]: [2, 32, {H}, {W}] = sum(pad(operand[b, i + r - 1, j + s - 1, c], 0.0) * w[r, s, o, c], c, r, s)",
    "u[b, o, i, j] = relu(z[b, o, i, j] + g[o])",
)
POOL = f"p[b, o, k, l]: [2, 32, {H // 2}, {W // 2}] = max(u[b, o, k * 2 + m, l * 2 + q], m=2, q=2)"
SHAPES = {
    "x": f"f32[2, 3, {H}, {W}]",
    "f": "f32[32, 3, 3, 3]",
    "g": "f32[32]",
    "w": "tf32[3, 3, 32, 32]",
    "v": "tf32[5, 5, 32, 32]",
    "d": "tf32[1, 1, 32, 32]",
    "h": "tf32[1, 5, 32, 32]",
}


def net(*lines, returned="p", shape=(2, 32, H // 2, W // 2)):
    text = " ".join(lines)
    read = [t for t in SHAPES if re.search(rf"\b{t}\[", text)]
    head = ", ".join(f"{t}: {SHAPES[t]}" for t in read)
    body = "".join(f"    {line}\n" for line in (*lines, f"return {returned}"))
    result = ", ".join(map(str, shape))
    return parse_spec(f'def net({head}) -> f32[{result}]:\n    """Net."""\n{body}')


def of_operand(name, source, filters, at, reduced):
    return (
        f"operand_{name}[b, i, j, o] = tf32({source}[b, o, i, j])",
        f"{name}[b, o, i, j]: [2, 32, {H}, {W}] = sum(pad(operand_{name}[{at}], 0.0) * {filters}, {reduced})",
    )


PIXEL = (
    "operand_2[b, i, j, o] = tf32(u[b, o, i, j])",
    f"t[b, o, i, j]: [2, 32, {H}, {W}] = sum(operand_2[b, i, j, c] * d[0, 0, o, c], c)",
    "t_2[b, o, i, j] = relu(t[b, o, i, j] + y[b, o, i, j] * u[b, o, i, j])",
)
WIDE = of_operand("t", "u", "v[r5, s5, o, c]", "b, i + r5 - 2, j + s5 - 2, c", "c, r5, s5")
SPACED = of_operand("t", "u", "w[r, s, o, c]", "b, i + r * 2 - 2, j + s * 2 - 2, c", "c, r, s")
ROW = of_operand("t", "u", "h[0, s5, o, c]", "b, i, j + s5 - 2, c", "c, s5")
HALVED = (
    "operand_2[b, i, j, o] = tf32(u[b, o, i, j])",
    f"p[b, o, k, l]: [2, 32, {H // 2}, {W // 2}] = "
    "sum(pad(operand_2[b, k * 2 + r - 1, l * 2 + s - 1, c], 0.0) * w[r, s, o, c], c, r, s)",
)
TWICE = (
    "v_1[b, o, i, j] = sigmoid(y[b, o, i, j])",
    POOL.replace("p[", "p_1["),
    POOL.replace("p[", "p_2[").replace("u[", "v_1["),
    "p[b, o, k, l] = p_1[b, o, k, l] + p_2[b, o, k, l]",
)
NETS = {
    "read twice": net(*FIRST, *SECOND, *TWICE),
    "pooled": net(*FIRST, *SECOND, POOL),
    "one pixel, beside": net(*FIRST, *SECOND, *PIXEL, POOL.replace("u[", "t_2[")),
    "five taps": net(*FIRST, *SECOND, *WIDE, POOL.replace("u[", "t[")),
    "spaced taps": net(*FIRST, *SECOND, *SPACED, POOL.replace("u[", "t[")),
    "a row of taps": net(*FIRST, *SECOND, *ROW, POOL.replace("u[", "t[")),
    "halved": net(*FIRST, *SECOND, *HALVED),
}
FLAT = {
    "one pixel, beside": {"z", "u", "operand_2", "t", "t_2"},
    "pooled": {"z", "u"},
    "read twice": {"z", "u"},
    "halved": {"z", "u", "operand_2"},
}


def flat(spec, most=1.5, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setattr("ir.partition.flat_chains.MOST", most)
    return with_flat_chains(spec, {})


@pytest.mark.parametrize("name", NETS)
def test_results_are_the_same(name, monkeypatch):
    spec = NETS[name]
    made, aliases = flat(spec, monkeypatch=monkeypatch)
    matrices = {e.target for e in made.equations if len(e.at) == 2 and e.target not in aliases}
    assert matrices == FLAT.get(name, {"z", "u", "operand_t", "t"})
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    (expected,) = evaluate(spec, inputs, {}).values()
    np.testing.assert_allclose(evaluate(made, inputs, {})["p"], expected, rtol=1e-6, atol=1e-6)
    network = partition(made, {}, aliases)
    found = evaluate_network(network, inputs)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    # What reads an image that is stored with zeros, but is not in planes, is a kernel of its own.
    assert len(network.steps) <= len(partition(spec, {}).steps) + (name == "read twice")


def test_what_a_convolution_reads_at_a_tap_is_a_row_of_a_matrix():
    made, aliases = flat(NETS["pooled"])
    (read,) = (r for r in made.equation("z").reads() if r.tensor == "operand_flat")
    place = Index("z_t") + Index("r") * (W + 1) + Index("s") - (W + 2)
    assert (read.at, read.pad) == ((place, Index("c")), 0.0)
    assert aliases == {"operand_flat": "operand", "u_image": "u"}
    steps = [set(s.outputs) for s in partition(made, {}, aliases).steps]
    # The first image is stored with zeros by its own kernel.
    assert steps == [{"operand"}, {"u"}, {"p"}]


STATISTICS = "p[o]: [32] = sum(z[b, o, i, j], b, i, j)"
BORDERS = (
    f"p[b, o, k, l]: [2, 32, {H // 2}, {W // 2}] = "
    "max(pad(u[b, o, k * 2 + m - 1, l * 2 + q - 1], -inf), m=3, q=3)"
)
SMALLER = f"z[b, o, k, l]: [2, 32, {H - 2}, {W - 2}] = sum(operand[b, k + r, l + s, c] * w[r, s, o, c], c, r, s)"


@pytest.mark.parametrize(
    "spec",
    [
        net(*FIRST, *SECOND, returned="u", shape=(2, 32, H, W)),  # a result of the whole
        net(*FIRST, SECOND[0], STATISTICS, returned="p", shape=(32,)),  # statistics of images
        net(*FIRST, *SECOND, BORDERS),  # a pooling that looks beyond the border
        net(*FIRST, SMALLER, returned="z", shape=(2, 32, H - 2, W - 2)),
    ],
)
def test_other_nets_stay_as_they_are(spec):
    assert flat(spec) == (spec, {})


def test_an_image_of_the_caller_stays_as_it_is():
    lines = ("operand[b, i, j, o] = tf32(x_2[b, o, i, j])", *SECOND, POOL)
    SHAPES["x_2"] = f"f32[2, 32, {H}, {W}]"
    try:
        spec = net(*lines)
    finally:
        del SHAPES["x_2"]
    assert flat(spec) == (spec, {})


def test_small_images_would_be_mostly_zeros(monkeypatch):
    spec = NETS["pooled"]
    waste = Padded(Image(2, H, W), 1, 1).waste
    assert waste == (H + 1) * (W + 1) / (H * W)
    assert flat(spec, waste, monkeypatch) == (spec, {})
    assert flat(spec, waste + 1e-3, monkeypatch)[0] != spec
