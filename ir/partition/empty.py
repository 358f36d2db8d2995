"""Removes tensors without elements, which no kernel computes.

before: x: f32[0, 4], y[j] = sum(x[i, j], i) + b[j], z[i, j] = x[i, j] * 2.0
after:  y[j] = 0.0 + b[j]

A reduction over an empty range is its identity element. A padded read of an empty tensor is its
padding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf, isfinite

from ir.dtypes import is_float
from ir.functions import IDENTITY
from ir.network import Buffer, Network
from ir.ranges import Ranges
from ir.sizes import shape
from ir.spec import (
    Apply,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Index,
    Number,
    Read,
    Reduce,
    Spec,
    Tensor,
)
from ir.verify import dtypes
from ir.visit import pruned, rebuilt

_LARGEST = {"i64": 2**63 - 1, "i32": 2**31 - 1, "i16": 2**15 - 1, "i8": 127, "u8": 255, "b8": 1}
_CONSTANT = {
    **{reduction: value for reduction, value in IDENTITY.items() if isfinite(value)},
    "argmax": 0,
    "argmin": 0,
}


def without_empty(spec: Spec) -> Spec:
    """Removes empty tensors from a literal spec, and the inputs that nothing reads afterwards.

    Returns the same spec if no tensor is empty.
    """
    if Number(0) not in _sizes(spec):
        return spec
    ranges = Ranges(spec)
    ranges.infer()
    gone = {name for name, sizes in ranges.shapes.items() if Number(0) in sizes}
    still = {i for i, r in ranges.found.items() if r.high == Number(0)}
    known = dtypes(spec)
    kept = tuple(
        _equation(e, ranges.shape(e.target), known, gone, still)
        for e in spec.equations
        if e.target not in gone
    )
    outputs = tuple(t for t in spec.outputs if t.name not in gone)
    made = pruned(replace(spec, outputs=outputs, equations=kept))
    read = {name for e in made.equations for name in e.sources()}
    return replace(made, inputs=tuple(t for t in spec.inputs if t.name in read))


def with_empty(network: Network, whole: Spec) -> Network:
    """Adds the empty inputs and outputs of `whole` to a network of `without_empty(whole)`.

    Nothing writes the empty buffers.
    """
    held = {b.name: b for b in network.buffers}
    inputs = [held.pop(t.name, _buffer(t, "input")) for t in whole.inputs]
    shown = {t.name: out for t, out in zip(_full(whole), network.outputs, strict=True)}
    empty = [_buffer(t, "output") for t in whole.outputs if t.name not in shown]
    outputs = tuple(shown.get(t.name, (t.name, shape(t, {}))) for t in whole.outputs)
    return replace(network, buffers=(*inputs, *held.values(), *empty), outputs=outputs)


def is_empty(tensor: Tensor) -> bool:
    """Whether a tensor of literal sizes has no elements."""
    return 0 in shape(tensor, {})


def _sizes(spec: Spec) -> set[Expr]:
    """All sizes that the spec writes."""
    shapes = [t.shape for t in (*spec.inputs, *spec.outputs)] + [e.sizes for e in spec.equations]
    ends = [r.high for e in spec.equations if isinstance(e.value, Reduce) for r in e.value.ranges]
    return {size for sizes in (*shapes, ends) for size in sizes}


def _full(spec: Spec) -> list[Tensor]:
    return [t for t in spec.outputs if not is_empty(t)]


def _buffer(t: Tensor, role: str) -> Buffer:
    return Buffer(t.name, t.dtype, shape(t, {}), role)


def _equation(
    e: Equation,
    sizes: tuple[Expr, ...],
    known: Mapping[str, str],
    gone: Collection[str],
    still: Collection[str],
) -> Equation:
    """Rewrites an equation of a nonempty tensor. gone: empty tensors. still: indices with an empty
    range."""
    dtype = known[e.target]
    reduced = set(e.reduced)
    free = {n.name for p in (*e.at, e.value) for n in p.walk() if isinstance(n, Index)} - reduced
    if e.accumulate and free & set(still):  # without updates, the target is zeros
        at = tuple(Index(f"{e.target}_{n}") for n in range(len(e.at)))
        return replace(e, at=at, value=_constant(0, dtype), accumulate=False, sizes=sizes)
    nothing = isinstance(e.value, Reduce) and (reduced & set(still) or _nowhere(e.value, gone))
    if nothing:
        return replace(e, value=_identity(e.reduce.reduction, dtype), sizes=sizes)
    return replace(e, value=_unread(e.value, known, gone), sizes=sizes)


def _nowhere(value: Reduce, gone: Collection[str]) -> bool:
    """Whether a jagged range reads its bounds from an empty tensor, so that it is empty."""
    jagged = {r.index for r in value.ranges if r.jagged}
    reads = (n for n in value.walk() if isinstance(n, Read) and n.tensor in gone)
    return any(Index(i) in n.walk() for n in reads for i in jagged)


def _unread(expr: Expr, known: Mapping[str, str], gone: Collection[str]) -> Expr:
    """Replaces reads of empty tensors by constants.

    A condition that never holds guards an unpadded read, so any constant can replace it.
    """
    if isinstance(expr, Read) and expr.tensor in gone:
        return _constant(expr.pad or 0, known[expr.tensor])
    if isinstance(expr, Bucketize) and expr.borders in gone:
        return Cast("i32", Number(0))
    if isinstance(expr, Apply) and expr.function == "div" and expr.args[1] == Number(0):
        # the mean of an empty range; compilers reject a division by 0
        return _unread(expr.args[0] * inf, known, gone)
    return rebuilt(expr, lambda one: _unread(one, known, gone))


def _identity(reduction: str, dtype: str) -> Expr:
    """The identity element of a reduction."""
    if reduction in _CONSTANT:
        return _constant(_CONSTANT[reduction], dtype)
    if is_float(dtype):
        return _constant(IDENTITY[reduction], dtype)
    largest = _LARGEST[dtype]
    smallest = -largest - 1 if dtype.startswith("i") else 0
    return _constant(largest if reduction == "min" else smallest, dtype)


def _constant(value: float, dtype: str) -> Expr:
    if dtype == "b8":
        return Number(bool(value))
    return Cast(dtype, Number(float(value) if is_float(dtype) else value))
