"""Closeness: whether elements are equal but for a tolerance."""

from __future__ import annotations

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import both, call, either
from ir.spec import Expr


def _close(x: Expr, y: Expr, rtol: float, atol: float, equal_nan: bool, real: bool) -> Expr:
    near = call("le", call("abs", x - y), call("abs", y * rtol) + atol)
    if not real:
        return either(call("eq", x, y), near)
    near = both(near, call("isfinite", x), call("isfinite", y))
    close = either(call("eq", x, y), near)
    nans = both(call("isnan", x), call("isnan", y))
    return either(close, nans) if equal_nan else close


@rule("isclose")
def isclose(
    b: Builder, out: Meta, self: Value, other: Value, rtol: float = 1e-05, atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:  # fmt: skip
    real = self.dtype.startswith(("f", "b")) and self.dtype != "b8"
    compute = None if real else "f64"

    def body(x: Expr, y: Expr) -> Expr:
        return _close(x, y, rtol, atol, equal_nan, real)

    return b.pointwise(out, body, self, other, compute=compute, name="close")


@rule("allclose")
def allclose(
    b: Builder, out: Meta, self: Value, other: Value, rtol: float = 1e-05, atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:  # fmt: skip
    """One truth value; the shape over which both are compared is that of the larger rank."""
    shape = max((self.shape, other.shape), key=len)
    close = isclose(b, Meta("b8", shape), self, other, rtol, atol, equal_nan)
    return b.fold("all", out, shape, close.at, "all_close")
