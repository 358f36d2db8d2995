"""Products: a sum of products as a matmul, for any order of axes."""

from __future__ import annotations

from dataclasses import dataclass

from backends.backend import BackendError
from backends.gpu.blocks import Blocks
from backends.gpu.flat_sums import FlatSum
from backends.gpu.shapes import permuted
from backends.gpu.tile import Joined, Masked, Permuted, Product, Reshaped
from backends.gpu.values import product
from ir.spec import DTYPES, Expr, Number

WIDE = 4  # bytes of elements that a warpgroup instruction reads contiguous along K only
LARGE_SIDE = 64  # M of a warpgroup instruction
_SUMS = {"i8": "i32", "i32": "i32", "f64": "f64"}


def summed_in(dtype: str) -> str:
    """The dtype in which products of operands of a dtype are accumulated."""
    return _SUMS.get(dtype, "f32")


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a matmul."""

    value: Expr
    axes: tuple[str, ...]
    dtype: str  # of its elements


def matmul(
    blocks: Blocks,
    out: Expr,
    axes: tuple[str, ...],
    a: Operand,
    b: Operand,
    onto: bool,
    scales: tuple[Operand, ...] = (),
    k_last: bool = False,
    transposed: bool = False,
) -> Expr:
    """a times b over the axes of a value, plus `out` where `onto`.

    scales: block scales along the last index of K.
    k_last: see `Rules`.
    transposed: see `transposed_products`.
    """
    batch, rows, columns = _groups(axes, a, b)
    if not set(rows) <= {*a.axes}:
        a, b, scales = b, a, scales[::-1]
    if k_last and not onto and not scales and _faster_transposed(blocks, a, b, rows, columns):
        a, b, rows, columns = b, a, columns, rows
    if transposed:
        a, b, rows, columns = b, a, columns, rows
    over = tuple(i for i in a.axes if i not in batch and i not in rows)
    left = _shaped(blocks, a, (batch, rows, over))
    right = _shaped(blocks, b, (batch, over, columns))
    parts = _scales(blocks, scales, batch, rows, columns, over)
    natural = (*batch, *rows, *columns)
    alone = len(rows) == len(columns) == 1 and len(batch) < 2
    if _is_straight(axes, batch, rows, columns):
        return Product(left, right, out if onto else None, a.dtype, parts)
    found: Expr = Product(left, right, None, a.dtype, parts)
    found = found if alone else Reshaped(found, blocks.shape(natural))
    whole = permuted(found, natural, axes)
    return Joined("sum", out, whole, False) if onto else whole


def flat_sum(
    blocks: Blocks, axes: tuple[str, ...], a: Operand, b: Operand, transposed: bool = False
) -> FlatSum | None:
    """The matrix form of a sum of such matmuls; None where it already is a matrix. transposed: see `matmul`."""
    batch, rows, columns = _groups(axes, a, b)
    if transposed:
        rows, columns = columns, rows
    if _is_straight(axes, batch, rows, columns):
        return None
    groups = (*((batch,) if batch else ()), rows, columns)
    matrix = tuple(product([blocks[i].wide for i in group]) for group in groups)
    natural = (*batch, *rows, *columns)
    return FlatSum(matrix, blocks.shape(natural), natural, axes)


def _groups(
    axes: tuple[str, ...], a: Operand, b: Operand
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The batch, M and N axes; M is what the value has first."""
    batch = tuple(i for i in axes if i in a.axes and i in b.axes)
    rows = tuple(i for i in axes if i in a.axes and i not in b.axes)
    columns = tuple(i for i in axes if i in b.axes and i not in a.axes)
    kept = tuple(i for i in axes if i not in batch)
    first = bool(kept) and kept[0] in columns
    return (batch, columns, rows) if first else (batch, rows, columns)


def _is_straight(
    axes: tuple[str, ...],
    batch: tuple[str, ...],
    rows: tuple[str, ...],
    columns: tuple[str, ...],
) -> bool:
    """Whether a matmul has the axes of its result, in their order."""
    plain = len(rows) == len(columns) == 1 and len(batch) < 2
    return plain and (*batch, *rows, *columns) == axes


def _faster_transposed(
    blocks: Blocks, a: Operand, b: Operand, rows: tuple[str, ...], columns: tuple[str, ...]
) -> bool:
    """Whether the transposed matmul is faster: the instruction reads operand B from shared memory,
    K is not last in b but last in a, and there are enough rows."""
    wide = DTYPES.get(a.dtype, 4) == DTYPES.get(b.dtype, 4) == WIDE
    # It is computed in registers, and would go through shared memory
    masked = isinstance(a.value, Masked)
    if not wide or masked or len(rows) != 1 or len(columns) != 1:
        return False
    side = blocks[columns[0]].wide
    enough = isinstance(side, Number) and side.value >= LARGE_SIDE
    return enough and a.axes[-1:] != rows and b.axes[-1:] == columns


def _scales(
    blocks: Blocks,
    scales: tuple[Operand, ...],
    batch: tuple[str, ...],
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    over: tuple[str, ...],
) -> tuple[Expr, ...]:
    """The scales of both operands, in the order of the operands' axes."""
    if not scales:
        return ()
    for one in scales:
        if set(one.axes) & set(over) != set(over[:-1]):
            raise BackendError("emit", f"scales over {one.axes} of a sum over {over}")
    a, b = scales
    return _shaped(blocks, a, (batch, rows, over[:-1])), _shaped(
        blocks, b, (batch, over[:-1], columns)
    )


def _shaped(blocks: Blocks, side: Operand, groups: tuple[tuple[str, ...], ...]) -> Expr:
    """An operand with the axes of each group merged.

    Groups in another order are merged before they are permuted. The matrix unit can then read a
    bulk-copied tile in place. Otherwise threads would load it from shared memory and store it there
    again.
    """
    order = tuple(i for g in groups for i in g)
    if all(len(g) == 1 for g in groups[1:]) and len(groups[0]) < 2:
        return permuted(side.value, side.axes, order)
    kept = groups if groups[0] else groups[1:]
    lying = tuple(sorted((g for g in kept if g), key=lambda g: side.axes.index(g[0])))
    if len(lying) == len(kept) and tuple(i for g in lying for i in g) == side.axes != order:
        joined = Reshaped(side.value, _sides(blocks, lying))
        return Permuted(joined, tuple(map(lying.index, kept)))
    return Reshaped(permuted(side.value, side.axes, order), _sides(blocks, kept))


def _sides(blocks: Blocks, groups: tuple[tuple[str, ...], ...]) -> tuple[Expr, ...]:
    """The number of elements of groups of axes."""
    return tuple(product([blocks[i].wide for i in g]) for g in groups)
