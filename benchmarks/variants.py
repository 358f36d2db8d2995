"""Variants: a spec, and its schedule, at another float dtype."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ir.errors import KernelError
from ir.schedule import Schedule
from ir.spec import FLOATS, Cast, Expr, Read, Spec, Tensor
from ir.verify import facts

NARROW = ("f16", "bf16")


def with_dtype(spec: Spec, dtype: str) -> Spec:
    """Returns the spec with its float inputs and outputs in `dtype`. A spec without floats is
    unchanged.

    Explicit casts stay. A read without a cast gets one to f32 if the new dtype is narrow, so the
    arithmetic is that of the library's 16-bit kernels.

    Raises KernelError for a dtype that is not a float, and for a spec that does not verify.
    """
    if all(t.dtype not in FLOATS for t in (*spec.inputs, *spec.outputs)):
        return spec
    if dtype not in FLOATS:
        raise KernelError(f"`{dtype}` is no float", allowed=", ".join(FLOATS))
    floats = {t.name for t in spec.inputs if t.dtype in FLOATS}
    widen = floats if dtype in NARROW else set()
    made = replace(
        spec,
        inputs=tuple(_retyped(t, dtype) for t in spec.inputs),
        outputs=tuple(_retyped(t, dtype) for t in spec.outputs),
        equations=tuple(replace(e, value=_widened(e.value, widen)) for e in spec.equations),
    )
    facts(made)
    return made


def schedule_with_dtype(schedule: Schedule, dtype: str) -> Schedule:
    """Returns a schedule whose products are rounded to `dtype` instead of another 16-bit dtype. If
    `dtype` is wider, they are not rounded."""
    made = []
    for decision in schedule.decisions:
        if decision.verb == "precision" and decision.option("dtype") in NARROW:
            if dtype not in NARROW:
                continue
            decision = replace(decision, options=(("dtype", dtype),))
        made.append(decision)
    return Schedule(schedule.kernel, tuple(made))


def _retyped(tensor: Tensor, dtype: str) -> Tensor:
    return replace(tensor, dtype=dtype) if tensor.dtype in FLOATS else tensor


def _widened(expr: Expr, names: set[str]) -> Expr:
    """Returns the expression with `f32(...)` around each read of `names` without a cast."""
    if isinstance(expr, Cast) and isinstance(expr.value, Read):
        return expr
    if isinstance(expr, Read) and expr.tensor in names:
        return Cast("f32", expr)
    changed: dict[str, Any] = {}
    for f in fields(expr):
        value = getattr(expr, f.name)
        if isinstance(value, Expr) and f.name != "place":
            changed[f.name] = _widened(value, names)
        elif isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
            changed[f.name] = tuple(_widened(v, names) if isinstance(v, Expr) else v for v in value)
    return replace(expr, **changed) if changed else expr
