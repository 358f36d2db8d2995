"""Operations: the kinds of work in a spec, as tags of documents."""

from __future__ import annotations

from collections.abc import Iterator

from ir.contraction import contraction
from ir.functions import POINTWISE
from ir.recurrence import recurrences
from ir.spec import Apply, Bucketize, Equation, Expr, Index, Range, Read, Reduce, Scan, Spec

OPERATIONS = (
    "product",  # a contraction for a matrix unit
    "batched",  # a contraction with an index of both operands and the result
    "chain",  # a contraction of another contraction's result
    "reduction",  # any other reduction
    "softmax",  # exponentials minus a maximum
    "norm",  # square root of a sum
    "scan",
    "window",  # positions with two indices, or a read through a pad
    "gather",
    "scatter",
    "jagged",
    "search",  # a search in sorted borders
    "mask",  # a selection by index values
    "recurrence",
    "random",
    "special",  # functions computed by a table or a series
    "pointwise",  # only elementwise arithmetic
)


def operations(spec: Spec) -> tuple[str, ...]:
    """The kinds of operations in a spec, in the order of `OPERATIONS`."""
    found = {kind for e in spec.equations for kind in _of_equation(e)}
    found |= set(_of_chains(spec))
    if recurrences(spec):
        found.add("recurrence")
    if not found - {"special", "mask"}:
        found.add("pointwise")
    return tuple(kind for kind in OPERATIONS if kind in found)


def _of_equation(e: Equation) -> Iterator[str]:
    product = contraction(e)
    if product is not None:
        yield "product"
        if product.batch:
            yield "batched"
    elif isinstance(e.value, Reduce):
        yield "reduction"
    if isinstance(e.value, Scan):
        yield "scan"
    if e.accumulate:
        yield "scatter"
    for node in e.value.walk():
        yield from _of_node(node)


def _of_node(node: Expr) -> Iterator[str]:
    match node:
        case Apply(function=name, args=args):
            if POINTWISE[name].unit == "special":
                yield "special"
            if name == "uniform":
                yield "random"
            if name == "where" and any(isinstance(n, Index) for n in _outside_reads(args[0])):
                yield "mask"
        case Bucketize():
            yield "search"
        case Range(jagged=True):
            yield "jagged"
        case Read(at=at, pad=pad):
            if pad is not None or any(len(_indices(p)) > 1 for p in at):
                yield "window"
            if any(isinstance(n, Read) for p in at for n in p.walk()):
                yield "gather"


def _of_chains(spec: Spec) -> Iterator[str]:
    """The kinds that several equations form together."""
    maxima = {
        e.target
        for e in spec.equations
        if isinstance(e.value, Reduce) and e.value.reduction == "max"
    }
    sums = {
        e.target
        for e in spec.equations
        if isinstance(e.value, Reduce) and e.value.reduction == "sum"
    }
    made: set[str] = set()  # contractions, and tensors computed from them
    for e in spec.equations:
        for node in e.value.walk():
            if not isinstance(node, Apply):
                continue
            read = {n.tensor for n in node.walk() if isinstance(n, Read)}
            if node.function in ("exp", "exp2") and read & maxima:
                yield "softmax"
            if node.function in ("sqrt", "rsqrt") and read & sums:
                yield "norm"
        below = bool(made & set(e.sources()))
        if contraction(e) is not None:
            if below:
                yield "chain"
            made.add(e.target)
        elif below:
            made.add(e.target)


def _outside_reads(expr: Expr) -> Iterator[Expr]:
    """The nodes of an expression outside of tensor positions."""
    yield expr
    if not isinstance(expr, Read):
        for child in expr.children():
            yield from _outside_reads(child)


def _indices(expr: Expr) -> set[str]:
    return {n.name for n in _outside_reads(expr) if isinstance(n, Index)}
