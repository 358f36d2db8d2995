"""The roofline: compulsory traffic and operations of a spec, and the time bound that they set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ir.contraction import contraction
from ir.machine import Machine
from ir.sizes import bind, shape
from ir.sizes import value as number
from ir.spec import DTYPES, Read, Reduce, Spec, Tensor
from ir.verify import facts as facts_of

TF32_PRODUCTS = 3  # tf32 matmuls in one of f32 accuracy (3xTF32)


@dataclass(frozen=True, slots=True)
class Roofline:
    """A lower bound on the time of any kernel for the spec."""

    us: float  # microseconds
    bound: str  # `memory` or `matrix`
    bytes: int  # of all inputs and outputs, each moved once
    flops: int  # of the largest contraction; a multiply-add counts as two


def roofline(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Roofline:
    """The roofline of a spec: compulsory traffic over bandwidth, contractions over peak.

    A tensor that is only gathered from counts the expected number of distinct rows for uniformly
    drawn positions, so there the bound holds on average only.
    """
    bound = bind(spec, sizes)
    facts = facts_of(spec)
    moved = sum(_read_bytes(spec, t.name, bound) for t in spec.inputs)
    moved += sum(DTYPES[t.dtype] * prod(shape(t, bound)) for t in spec.outputs)
    # Reassociation changes the sum over a chain of contractions, so the largest one counts.
    flops, us = 0, 0.0
    for e in spec.equations:
        if contraction(e) is None:
            continue
        names = dict.fromkeys((*e.indices, *e.reduced))
        work = 2 * prod(number(facts.ranges[i].high, bound) for i in names)
        time = 1e6 * work / product_peak(machine, _operand_dtype(spec, e.reduce, facts.tensors))
        if time > us:
            flops, us = work, time
    memory = 1e6 * moved / machine.bandwidth
    return Roofline(max(memory, us), "memory" if memory >= us else "matrix", moved, flops)


def product_peak(machine: Machine, dtype: str) -> float:
    """Operations a second of matmuls with the accuracy of a dtype, on the fastest unit.

    For f32 a tensor core with tf32 can compute 3xTF32.
    """
    unit = "matrix" if "matrix" in machine.units else "vector"
    peak = machine.peak(unit, dtype)
    if dtype == "f32" and machine.has_matrix("tf32"):
        return max(peak, machine.peak("matrix", "tf32") / TF32_PRODUCTS)
    return peak


def _operand_dtype(spec: Spec, value: Reduce, tensors: Mapping[str, Tensor]) -> str:
    """tf32 if the spec rounds all operands to it; else the narrowest dtype of the inputs."""
    if {tensors[n.tensor].dtype for n in value.walk() if isinstance(n, Read)} == {"tf32"}:
        return "tf32"
    dtypes = [t.dtype for t in spec.inputs if t.dtype in DTYPES]
    return min(dtypes, key=lambda d: DTYPES[d])


def _read_bytes(spec: Spec, name: str, sizes: Mapping[str, int]) -> int:
    """Bytes of an input that a kernel must read."""
    tensor = next(t for t in spec.inputs if t.name == name)
    whole = DTYPES[tensor.dtype] * prod(shape(tensor, sizes))
    gathered = 0
    for e in spec.equations:
        for read in e.reads():
            if read.tensor != name:
                continue
            inner = [n.tensor for p in read.at for n in p.walk() if isinstance(n, Read)]
            if not inner:
                return whole
            rows = next((t for t in spec.inputs if t.name == inner[0]), None)
            count = prod(shape(rows, sizes)) if rows else sizes_of(spec, inner[0], sizes)
            rows_there, *row = shape(tensor, sizes)
            # Expected number of distinct rows that `count` uniform draws hit.
            hit = rows_there * (1 - (1 - 1 / rows_there) ** count)
            gathered += int(DTYPES[tensor.dtype] * hit * prod(row))
    return gathered or whole


def sizes_of(spec: Spec, tensor: str, sizes: Mapping[str, int]) -> int:
    """The number of elements of an intermediate tensor."""
    return prod(shape(facts_of(spec).tensors[tensor], sizes))
