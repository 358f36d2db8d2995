"""Removes roundings to bf16 and f16 between pointwise equations of a kernel.

before: a[i] = bf16(f32(x[i]) + 1.0), y[i] = bf16(f32(a[i]) * 0.5)
after:  a[i] = f32(x[i]) + 1.0,       y[i] = bf16(a[i] * 0.5)

PyTorch rounds the result of each operator when it stores it. A kernel keeps such a result in
registers, where rounding takes time and loses accuracy. Inductor omits the roundings as well.
Operands of matmuls stay rounded, as matrix units take them in 16 bits. Roundings also stay in what
a kernel stores, in what reductions read, and in what is compared or converted to integers, where a
different last bit can change the result.
"""

from __future__ import annotations

from dataclasses import replace

from ir.dtypes import Dtypes
from ir.functions import POINTWISE
from ir.recurrence import stepped
from ir.spec import Apply, Bucketize, Cast, Equation, Expr, Read, Reduce, Scan, Spec
from ir.verify import facts
from ir.visit import rebuilt

_ROUNDED = ("bf16", "f16")  # narrower floats are quantised on purpose
_KEPT_KINDS = ("compare", "test", "logic", "bits", "random")
_JUMPS = ("floordiv", "mod", "floor", "ceil", "round", "trunc", "sign", "fmod")


def unrounded(spec: Spec) -> Spec:
    """The spec of a kernel without such roundings. Sizes of targets stay as they are written."""
    dtypes = Dtypes({n: t.dtype for n, t in facts(spec).tensors.items()}, dict(spec.attributes))
    rounded = {
        e.target: e.value.dtype
        for e in spec.equations
        if isinstance(e.value, Cast)
        and e.value.dtype in _ROUNDED
        and dtypes.of(e.value.value) == "f32"
        and _is_local(spec, e)
    }

    def read(expr: Expr) -> Expr:
        match expr:
            case Cast("f32", Read(tensor) as value) if tensor in rounded:
                return value
            case Read(tensor) if tensor in rounded:
                return Cast(rounded[tensor], expr)
        return rebuilt(expr, read)

    def made(e: Equation) -> Equation:
        value = e.value.value if e.target in rounded and isinstance(e.value, Cast) else e.value
        return replace(e, value=read(value))

    return replace(spec, equations=tuple(map(made, spec.equations))) if rounded else spec


def _is_local(spec: Spec, e: Equation) -> bool:
    """Whether only smooth pointwise equations read an equation's target."""
    if e.accumulate or stepped(spec, e.target) or e.target in {t.name for t in spec.outputs}:
        return False
    readers = [other for other in spec.equations if e.target in other.sources()]
    return bool(readers) and all(map(_is_smooth, readers))


def _is_smooth(e: Equation) -> bool:
    if e.accumulate:
        return False
    for node in e.value.walk():
        if isinstance(node, Reduce | Scan | Bucketize):
            return False
        if isinstance(node, Cast) and node.dtype not in (*_ROUNDED, "f32"):
            return False
        if isinstance(node, Apply) and _jumps(node):
            return False
    return True


def _jumps(node: Apply) -> bool:
    return node.function in _JUMPS or POINTWISE[node.function].kind in _KEPT_KINDS
