"""Instruction counts: how many instructions the compiler emits for one pointwise operation."""

from __future__ import annotations

from ir.nest.steps import Step
from ir.spec import Number

# Per element, where it is not 1. The special function unit's share is counted separately.
OPERATIONS = {
    "div": 6,
    "floordiv": 20,
    "mod": 20,
    "pow": 40,
    "sqrt": 6,
    "exp": 2,
    "log": 4,
    "tanh": 20,
    "sigmoid": 8,
    "erf": 22,
    "sin": 24,
    "cos": 24,
    "silu": 9,
    "gelu": 26,
    "fmod": 20,
    "uniform": 90,
    "exp2": 2,
    "log2": 4,
    "log10": 5,
    "log1p": 20,
    "expm1": 20,
    "erfc": 30,
    "tan": 30,
    "asin": 18,
    "acos": 18,
    "atan": 18,
    "atan2": 30,
    "sinh": 24,
    "cosh": 16,
    "asinh": 28,
    "acosh": 26,
    "atanh": 26,
}
BY_NUMBER = {
    "floordiv": 4,
    "mod": 6,
}  # for a division by a constant that is no power of two


def instructions(step: Step) -> int:
    """Instructions per element of a step. A division by a constant becomes a multiplication and shifts."""
    by = step.args[1] if len(step.args) > 1 else None
    if step.function in BY_NUMBER and isinstance(by, Number) and isinstance(by.value, int):
        return 1 if by.value & (by.value - 1) == 0 else BY_NUMBER[step.function]
    return OPERATIONS.get(step.function, 1)
