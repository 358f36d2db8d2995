"""Tensors over some axes, as tensors over others."""

from backends.gpu.shapes import permuted, spread
from backends.gpu.tile import Name, Permuted, Spread

X = Name("value", "x")


def test_a_tensor_is_spread_over_axes():
    assert spread(X, ("m",), ("m", "n")) == Spread(X, (True, False))
    assert spread(X, ("n",), ("m", "n")) == Spread(X, (False, True))
    assert spread(X, ("m", "n"), ("m", "n")) == X
    assert spread(X, (), ("m", "n")) == X


def test_axes_that_lie_the_other_way_are_permuted_first():
    transposed = Permuted(X, (1, 0))
    assert spread(X, ("n", "m"), ("m", "n")) == transposed
    assert spread(X, ("n", "m"), ("m", "k", "n")) == Spread(transposed, (True, False, True))
    assert permuted(X, ("a", "b", "c"), ("c", "a", "b")) == Permuted(X, (2, 0, 1))
