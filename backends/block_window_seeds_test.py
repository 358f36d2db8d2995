"""Seeds whose blocks transpose windows of an image: only a language that has such copies gets them."""

import pytest

from backends.registry import backend, served_by, target
from ir.parse.parse import parse_spec

CONV = parse_spec('''def conv(x: f16[B, C, H, W], w: f16[O, C, 3, 3]) -> f16[B, O, H, W]:
    """Convolve images."""
    acc[b, o, p, q] = sum(f32(pad(x[b, c, p + i - 1, q + j - 1], 0.0)) * f32(w[o, c, i, j]), c, i, j)
    y[b, o, p, q] = f16(acc[b, o, p, q])
    return y
''')
SIZES = dict(B=256, C=96, O=64, H=28, W=28)


@pytest.mark.parametrize(
    ("language", "has"), [("cutedsl", True), ("triton", False), ("cuda", False)]
)
def test_only_languages_that_have_such_copies_get_such_seeds(language, has):
    machine = served_by(target("h200"), backend(language))
    every = machine.model.alternatives(CONV, machine, SIZES)
    assert has == any(d.option("by") == "window" for s in every for d in s.of("copy"))
