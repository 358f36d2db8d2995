"""Digests are short, stable, and the same for equal specs."""

from ir.digest import LENGTH, spec_digest, text_digest
from ir.parse.parse import parse_spec

TEXT = 'def t(x: f32[M]) -> f32[M]:\n    """Doc."""\n    y[m] = x[m] * 2.0\n    return y\n'


def test_a_digest_is_the_beginning_of_sha256():
    assert text_digest("") == "e3b0c44298fc1c14"
    assert len(text_digest("é\ud800")) == LENGTH


def test_a_spec_has_one_digest_however_it_is_written():
    other = TEXT.replace("x[m] * 2.0", "(x[(m)]*2.)  # twice")
    other = other.replace("(x: f32[M])", "(\n x: f32[M],\n)")
    assert spec_digest(parse_spec(TEXT)) == spec_digest(parse_spec(other)) == "ab1271f01b33b952"


def test_a_different_number_gives_another_digest():
    assert spec_digest(parse_spec(TEXT)) != spec_digest(parse_spec(TEXT.replace("2.0", "2")))
