"""Literal specs: replaces sizes and attributes by numbers.

before: y[m] = x[m] / M, for x: f32[M]
after:  y[m] = x[m] / 64, for x: f32[64]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ir.dtypes import is_float
from ir.sizes import bind, value
from ir.spec import Equation, Expr, Number, Range, Size, Spec, Tensor
from ir.visit import rebuilt


def literal(spec: Spec, sizes: Mapping[str, int]) -> Spec:
    """The spec at one set of sizes. Raises KernelError if a size is missing or invalid."""
    numbers = {**bind(spec, sizes), **dict(spec.attributes)}
    if not numbers:
        return spec

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Size):
            return Number(numbers[expr.name])
        made = rebuilt(expr, visit)
        if isinstance(made, Range) and not made.jagged and not made.partial:
            return replace(made, low=Number(value(made.low, {})), high=Number(value(made.high, {})))
        return made

    def sized(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(Number(value(size, numbers)) for size in shape)

    def tensor(t: Tensor) -> Tensor:
        return replace(
            t, shape=sized(t.shape), range=t.range if is_float(t.dtype) else sized(t.range)
        )

    def equation(e: Equation) -> Equation:
        at = tuple(map(visit, e.at))
        return replace(e, at=at, value=visit(e.value), sizes=sized(e.sizes))

    return replace(
        spec,
        inputs=tuple(map(tensor, spec.inputs)),
        outputs=tuple(map(tensor, spec.outputs)),
        equations=tuple(map(equation, spec.equations)),
        attributes=(),
        derived=(),
    )
