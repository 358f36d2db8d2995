"""Pointwise operators: each element of the result from one of each operand, broadcast."""

from __future__ import annotations

from frontends.aten.table import rule
from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, call


@rule("add")
def add(b: Builder, out: Meta, self: Value, other: Value | Term, alpha: Term = 1) -> Value:
    return b.pointwise(out, lambda x, y: x + (y if alpha == 1 else y * alpha), self, other)


@rule("relu")
def relu(b: Builder, out: Meta, self: Value) -> Value:
    return b.pointwise(out, lambda x: call("relu", x), self)
