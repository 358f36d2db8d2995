"""Sums of matmuls in the two-dimensional shape of the matrix unit.

A tile with several axes along M or N is a matrix with these axes merged. Compilers accumulate a
product in the matrix unit only if the sum has the same shape. A sum that is reshaped in each step
also waits for its product in each step. So the sum is a matrix in its loop, and gets its axes after
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from backends.gpu.shapes import permuted
from backends.gpu.tile import (
    Assign,
    Full,
    Joined,
    Loop,
    Name,
    Permuted,
    Product,
    Reshaped,
    Statement,
    expressions,
)
from ir.spec import Expr


@dataclass(frozen=True, slots=True)
class FlatSum:
    """A sum of matmuls whose axes differ from those of the matmul."""

    matrix: tuple[Expr, ...]  # the shape of the matmul's result
    shape: tuple[Expr, ...]  # with its axes separate
    natural: tuple[str, ...]  # the axes of `shape`
    axes: tuple[str, ...]  # the same in the order of the tile


def with_flat_sums(
    block: tuple[Statement, ...], sums: Mapping[Name, FlatSum]
) -> tuple[Statement, ...]:
    """The block, whose sums are matrices in the loops that only accumulate onto them. sums: by name."""
    for name, found in sums.items():
        block = _with_flat_sum(block, name, found)
    return block


def _with_flat_sum(
    block: tuple[Statement, ...], name: Name, found: FlatSum
) -> tuple[Statement, ...]:
    start = next((n for n, s in enumerate(block) if _fills(s, name)), None)
    if start is None:
        return block
    loops: list[int] = []
    for n, s in enumerate(block[start + 1 :], start + 1):
        if not _mentions(s, name):
            continue
        if not (isinstance(s, Loop) and _only_adds(s.body, name)):
            break
        loops.append(n)
    if not loops:
        return block
    made: list[Statement] = []
    for n, s in enumerate(block):
        if n == start and isinstance(s, Assign) and isinstance(s.value, Full):
            s = replace(s, value=replace(s.value, shape=found.matrix))
        elif n in loops and isinstance(s, Loop):
            s = replace(s, body=_added(s.body, name))
        made.append(s)
        if n == loops[-1]:
            apart: Expr = name if found.shape == found.matrix else Reshaped(name, found.shape)
            made.append(Assign(name, permuted(apart, found.natural, found.axes)))
    return tuple(made)


def _fills(s: Statement, name: Name) -> bool:
    return isinstance(s, Assign) and s.name == name and isinstance(s.value, Full)


def _mentions(s: Statement, name: Name) -> bool:
    return any(e == name for e in expressions(s))


def _only_adds(block: tuple[Statement, ...], name: Name) -> bool:
    """Whether a block only accumulates products onto a sum."""
    for s in block:
        if isinstance(s, Loop):
            if _mentions(replace(s, body=()), name) or not _only_adds(s.body, name):
                return False
        elif _mentions(s, name):
            product = _product(s, name)
            if product is None or any(e == name for e in expressions(product)):
                return False
    return True


def _added(block: tuple[Statement, ...], name: Name) -> tuple[Statement, ...]:
    made: list[Statement] = []
    for s in block:
        if isinstance(s, Loop):
            s = replace(s, body=_added(s.body, name))
        elif (product := _product(s, name)) is not None:
            s = Assign(name, replace(product, onto=name))
        made.append(s)
    return tuple(made)


def _product(s: Statement, name: Name) -> Product | None:
    """The product that a statement adds to a sum, in another shape; None for other statements."""
    if not isinstance(s, Assign) or s.name != name or not isinstance(s.value, Joined):
        return None
    if s.value.reduction != "sum" or s.value.onto != name:
        return None
    value = s.value.value
    value = value.value if isinstance(value, Permuted) else value
    inner = value.value if isinstance(value, Reshaped) else value
    return inner if isinstance(inner, Product) and inner.onto is None else None
