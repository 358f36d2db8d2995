"""A 1x1 convolution merges with a wider one if their results are concatenated; results are
unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from ir.parse.parse import parse_spec
from ir.partition.joined_taps import MOST, with_joined_taps
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate

ONE = "a[n, o, i, j] = sum(x[n, k, i, j] * u[o, k, 0, 0], k)"
WINDOWS = "b[n, p, i, j] = sum(pad(x[n, k, i + r - 1, j + 2*s - 2], 0.0) * v[p, k, r, s], k, r, s)"
AFTER = ("c[n, o, i, j] = relu(a[n, o, i, j] + d[o])", "e[n, p, i, j] = relu(b[n, p, i, j] + f[p])")
LAST = (
    "z[n, q, i, j]: [2, 7, 5, 6] = "
    "where(q < 4, pad({}[n, q, i, j], 0.0), pad({}[n, q - 4, i, j], 0.0))"
)
TYPES = {
    "x": "f32[2, {k}, 5, 6]",
    "u": "f32[4, {k}, 1, 1]",
    "v": "f32[3, {k}, 3, 3]",
    "d": "f32[4]",
    "f": "f32[3]",
}


def seen(*lines, k=2, fixed="uvdf"):
    """The equations of a spec that returns `z`, after its results were compared with the spec's."""
    read = [n for n in TYPES if any(f"{n}[" in line for line in lines)]
    given = ", ".join(f"{n}: {TYPES[n].format(k=k)}" for n in read)
    body = "\n".join(f"    {line}" for line in (*lines, "return z"))
    spec = parse_spec(f'def t({given}) -> f32[2, 7, 5, 6]:\n    """T."""\n{body}\n')
    made = with_joined_taps(spec, set(fixed))
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    want = evaluate(spec, inputs, {})["z"]
    np.testing.assert_allclose(evaluate(made, inputs, {})["z"], want, rtol=1e-9, atol=1e-12)
    return [e.target for e in made.equations]


def test_one_convolution_computes_both_with_their_epilogues():
    assert seen(ONE, WINDOWS, *AFTER, LAST.format("c", "e")) == [
        "v_joined",
        "b",
        "d_joined",
        "c",
        "z",
    ]
    assert seen(ONE, WINDOWS, LAST.format("a", "b")) == ["v_joined", "b", "z"]


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ((ONE, WINDOWS, *AFTER, LAST.format("c", "e")), {"fixed": "vdf"}),  # a filter that changes
        ((ONE, WINDOWS, LAST.format("a", "b")), {"k": MOST + 1}),  # zeros take longer than copies
        ((ONE, WINDOWS, AFTER[0], AFTER[1].replace("relu", "exp"), LAST.format("c", "e")), {}),
        ((ONE, WINDOWS, AFTER[0], LAST.format("c", "b")), {}),
        # windows without the place of the tap
        ((ONE, WINDOWS.replace("i + r - 1", "i + 2*r - 1"), LAST.format("a", "b")), {}),
        ((ONE, WINDOWS.replace("i + r - 1", "i + r + 1"), LAST.format("a", "b")), {}),
        # two convolutions of one tap
        ((ONE, "b[n, p, i, j] = sum(x[n, k, i, j] * v[p, k, 0, 1], k)", LAST.format("a", "b")), {}),
    ],
)
def test_others_stay_apart(lines, options):
    assert seen(*lines, **options) == [line.split("[")[0] for line in lines]
