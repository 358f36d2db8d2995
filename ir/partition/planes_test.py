"""Zero-padded planes of images, and the convolutions that keep the size of an image."""

import itertools

import numpy as np
import pytest

from ir.affine import affine
from ir.parse.parse import parse_spec
from ir.partition.planes import Image, Padded, SameSize
from ir.print import expression_text
from ir.reference.inputs import random_inputs
from ir.reference.reference import evaluate
from ir.spec import Index, Number
from ir.verify import facts

SHAPE = (2, 5, 7)


def convolution(rows, columns, taps, size=SHAPE[1:]):
    """A convolution of rounded operands whose windows are at these rows and columns."""
    text = f"""def f(x: tf32[2, 5, 7, 32], w: tf32[{taps[0]}, {taps[1]}, 32, 32]) -> f32[2, 32, {size[0]}, {size[1]}]:
    \"\"\"F.\"\"\"
    z[b, o, i, j]: [2, 32, {size[0]}, {size[1]}] = sum(pad(x[b, {rows}, {columns}, c], 0.0) * w[r, s, o, c], c, r, s)
    return z
"""
    return parse_spec(text)


def same_size(spec):
    return SameSize.of(spec.equations[0], facts(spec))


SAME = {
    "three taps": (("i + r - 1", "j + s - 1", (3, 3)), ((("r", 1), 1), (("s", 1), 1))),
    "spaced": (("i + r * 2 - 2", "j + s - 2", (3, 5)), ((("r", 2), 2), (("s", 1), 2))),
}


@pytest.mark.parametrize("name", SAME)
def test_a_convolution_of_the_same_size_reads_one_index(name):
    given, taps = SAME[name]
    spec = convolution(*given)
    one = same_size(spec)
    assert (one.image, one.names, one.taps) == (Image(*SHAPE), ("b", "o", "i", "j"), taps)
    (_, below), (_, beside) = taps
    plane, place = Padded(one.image, below, beside), Index("t")
    # The planes by hand: a read at one tap gives the pixel there, or a zero.
    inputs = random_inputs(spec, {}, np.random.default_rng(1))
    x, w = inputs["x"], inputs["w"]
    stored = np.zeros((SHAPE[0], plane.rows, plane.pitch, 32))
    stored[:, : SHAPE[1], : SHAPE[2]] = x
    stored = stored.reshape(plane.places, 32)
    offset, steps = below * plane.pitch + beside, [step for (_, step), _ in taps]
    form = affine(one.reading("stored", place, plane).at[0])
    assert form.offset == Number(-offset)
    assert dict(form.terms) == {"t": 1, "r": steps[0] * plane.pitch, "s": steps[1]}
    found = np.zeros((plane.places, 32))
    for r, s in itertools.product(*(range(n) for n in given[2])):
        at = np.arange(plane.places) + r * steps[0] * plane.pitch + s * steps[1] - offset
        inside = (at >= 0) & (at < plane.places)
        found += np.where(inside[:, None], stored[at % plane.places], 0.0) @ w[r, s].T
    found = found.reshape(SHAPE[0], plane.rows, plane.pitch, 32)[:, : SHAPE[1], : SHAPE[2]]
    expected = evaluate(spec, inputs, {})["z"].transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        ("i + r", "j + s - 1", (3, 3), (3, 7)),  # another size
        ("i + r - 1", "j * 2 + s - 1", (3, 3), (5, 4)),  # with a stride
        ("i + r - 2", "j + s - 1", (3, 3), (5, 7)),  # not as far on both sides
    ],
)
def test_others_are_not_of_the_same_size(given):
    assert same_size(convolution(*given)) is None


@pytest.mark.parametrize(("below", "beside"), [(1, 1), (2, 0), (0, 3)])
def test_places_are_told_apart(below, beside):
    plane = Padded(Image(*SHAPE), below, beside)
    assert plane.places == 2 * (5 + below) * (7 + beside)
    assert plane.waste == (5 + below) * (7 + beside) / 35
    image, row, column = map(expression_text, plane.split(Index("t")))
    assert (image, row, column) == (
        f"t // {(5 + below) * (7 + beside)}",
        f"t // {7 + beside} % {5 + below}",
        f"t % {7 + beside}",
    )
