"""What is out of bounds never counts, and is not masked where it is 0 anyway."""

import pytest

from backends.gpu.body import BodyBuilder
from backends.gpu.plain_rules import RULES
from backends.gpu.text import scalar_text
from ir.nest.nest import Tile
from ir.spec import Size
from testing.samples.samples import WITH_TF32, lowered, spec_of

LINES = ("tile(m, size=4)", "place(m.outer, level=grid)", "tile(k, size=16)")
SIZES = dict(M=8, K=32)
PADDED = "x: f32[M, K], w: f32[M], v: f32[K]"


def outside(term, reduction="sum", inputs="x: f32[M, K], w: f32[M]"):
    """What is known after a launch was written that reduces a term over k; and that term's
    value."""
    rest = "".join(f" + 0.0 * {t}" for t in ("w[m]",) if t not in term)
    spec = spec_of(
        f"t[m, k] = {term}",
        f"s[m] = {reduction}(t[m, k], k)",
        f"y[m] = s[m] + x[m, 0]{rest}",
        inputs=inputs,
        result="f32[M]",
    )
    (launch,) = lowered(spec, *LINES, sizes=SIZES, machine=WITH_TF32).launches
    body = BodyBuilder(launch, RULES)
    body.each()
    return body.masks


def identity(found, reduction, value="t", over=("k",)):
    made = found.identity(Tile(value), Size("X"), ("m", "k"), "f32", over, reduction)
    return scalar_text(made)


@pytest.mark.parametrize(
    "term", ["x[m, k] * 2.0", "-x[m, k]", "x[m, k] ** 2", "x[m, k] * x[m, k]", "x[m, k] * w[m]"]
)
def test_what_is_zero_outside_is_summed_as_it_is(term):
    assert identity(outside(term), "sum") == "X"


@pytest.mark.parametrize(
    "term", ["x[m, k] + 1.0", "exp(x[m, k])", "x[m, k] * exp(x[m, k])", "cos(x[m, k])"]
)
def test_other_sums_are_masked(term):
    """An exponential there could be infinite, and 0 times that is no number."""
    assert identity(outside(term), "sum") == "where(k_mask[None, :], X, 0.0)"


@pytest.mark.parametrize(("reduction", "number"), [("max", "-inf"), ("min", "inf")])
def test_zeros_count_for_maxima(reduction, number):
    found = outside("x[m, k] * 2.0", reduction)
    assert identity(found, reduction) == f"where(k_mask[None, :], X, {number})"


def test_a_padding_other_than_zero_is_masked():
    assert "k_mask" in identity(outside("pad(x[m, k - 1], 1.0) * v[k]", inputs=PADDED), "sum")
    assert identity(outside("pad(x[m, k - 1], 0.0) * v[k]", inputs=PADDED), "sum") == "X"


def test_only_reduced_indices_are_masked():
    assert identity(outside("x[m, k] + 1.0"), "sum", over=()) == "X"
    both = identity(outside("x[m, k] + 1.0"), "sum", over=("m", "k"))
    assert both == "where(m_mask[:, None] & k_mask[None, :], X, 0.0)"
