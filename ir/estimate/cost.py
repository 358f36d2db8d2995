"""Cost: the bytes and operations that a spec cannot do without, and the bound they set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ir.contraction import contraction
from ir.machine import Machine
from ir.sizes import bind, shape
from ir.sizes import value as number
from ir.spec import DTYPES, Read, Reduce, Spec
from ir.verify import facts as facts_of

TF32_PRODUCTS = 3  # in tf32 that make one accurate to f32


@dataclass(frozen=True, slots=True)
class Roofline:
    """A bound below which no kernel for the spec can go.

    us: microseconds.  bound: `memory` or `matrix`.  bytes: of all inputs and outputs, each
    moved once.  flops: of the contractions, two for a product and its sum.
    """

    us: float
    bound: str
    bytes: int
    flops: int


def roofline(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> Roofline:
    """The roofline of a spec: compulsory traffic over bandwidth, contractions over peak.

    A tensor that is only gathered from counts the rows that as many evenly drawn positions hit
    on average, so there the bound is one on average. Of a chain of
    contractions only the cheapest can be certain, so flops are those of the largest one.
    """
    bound = bind(spec, sizes)
    facts = facts_of(spec)
    moved = sum(_read_bytes(spec, t.name, bound) for t in spec.inputs)
    moved += sum(DTYPES[t.dtype] * prod(shape(t, bound)) for t in spec.outputs)
    flops, us = 0, 0.0
    for e in spec.equations:
        if contraction(e) is None:
            continue
        names = dict.fromkeys((*e.indices, *e.reduced))
        work = 2 * prod(number(facts.ranges[i].high, bound) for i in names)
        time = 1e6 * work / product_peak(machine, _operand_dtype(spec, e.value))
        if time > us:
            flops, us = work, time
    memory = 1e6 * moved / machine.bandwidth
    return Roofline(max(memory, us), "memory" if memory >= us else "matrix", moved, flops)


def product_peak(machine: Machine, dtype: str) -> float:
    """Operations a second of products that are accurate to a dtype, on the unit made for them. Where
    the matrix unit takes tf32, three of its products are as good as one of f32."""
    unit = "matrix" if "matrix" in machine.units else "vector"
    peak = machine.peak(unit, dtype)
    if dtype == "f32" and machine.has_matrix("tf32"):
        return max(peak, machine.peak("matrix", "tf32") / TF32_PRODUCTS)
    return peak


def _operand_dtype(spec: Spec, value: Reduce) -> str:
    """The narrowest dtype of the inputs that a product is made of."""
    dtypes = [t.dtype for t in spec.inputs if t.dtype in DTYPES]
    return min(dtypes, key=lambda d: DTYPES[d])


def _read_bytes(spec: Spec, name: str, sizes: Mapping[str, int]) -> int:
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
            hit = rows_there * (1 - (1 - 1 / rows_there) ** count)
            gathered += int(DTYPES[tensor.dtype] * hit * prod(row))
    return gathered or whole


def sizes_of(spec: Spec, tensor: str, sizes: Mapping[str, int]) -> int:
    """How many elements an intermediate tensor has."""
    return prod(shape(facts_of(spec).tensors[tensor], sizes))
