"""Closeness: whether two tensors are equal, all elements, but for a tolerance."""

from __future__ import annotations

from frontends.aten.comparison import isclose
from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value


@rule("allclose")
def allclose(
    b: Builder,
    out: Meta,
    self: Value,
    other: Value,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """One truth value; the shape over which both are compared is that of the larger rank."""
    shape = max((self.shape, other.shape), key=len)
    close = isclose(b, Meta("b8", shape), self, other, rtol, atol, equal_nan)
    return b.reduce("all", out, shape, close.at, "all_close")
