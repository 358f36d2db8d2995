"""Products: how a sum of products becomes `tl.dot`, whatever the order of its axes."""

from __future__ import annotations

from dataclasses import dataclass

from backends.triton.emit.blocks import Blocks
from backends.triton.emit.expressions import permuted

PRECISIONS = {"f32": "ieee", "tf32": "tf32"}


@dataclass(frozen=True, slots=True)
class Operand:
    """A side of a product. code: a tensor over axes.  dtype: of its elements."""

    code: str
    axes: tuple[str, ...]
    dtype: str


class Products:
    """Writes the products of one launch."""

    def __init__(self, blocks: Blocks):
        self.blocks = blocks

    def text(self, out: str, axes: tuple[str, ...], a: Operand, b: Operand, onto: bool) -> str:
        """The right side of `out = `: a times b, plus `out` where `onto`.

        axes: of the value, those that are in neither operand's sum.
        """
        batch = tuple(i for i in axes if i in a.axes and i in b.axes)
        rows = tuple(i for i in axes if i in a.axes and i not in b.axes)
        columns = tuple(i for i in axes if i in b.axes and i not in a.axes)
        kept = tuple(i for i in axes if i not in batch)
        if columns and kept[: len(columns)] == columns:
            a, b, rows, columns = b, a, columns, rows
        over = tuple(i for i in a.axes if i not in batch and i not in rows)
        left = self._shaped(a, (batch, rows, over))
        right = self._shaped(b, (batch, over, columns))
        kind = PRECISIONS.get(a.dtype, "")
        options = f', input_precision="{kind}"' if kind else ""
        natural = (*batch, *rows, *columns)
        straight = natural == axes and len(rows) == len(columns) == 1 and len(batch) < 2
        if straight and onto:
            return f"tl.dot({left}, {right}, {out}{options})"
        call = f"tl.dot({left}, {right}{options})"
        if not straight:
            call = permuted(f"tl.reshape({call}, {self.blocks.shape(natural)})", natural, axes)
        return f"{out} + {call}" if onto else call

    def _shaped(self, side: Operand, groups: tuple[tuple[str, ...], ...]) -> str:
        """An operand with the axes of each group joined to one."""
        order = tuple(i for g in groups for i in g)
        code = permuted(side.code, side.axes, order)
        if all(len(g) == 1 for g in groups[1:]) and len(groups[0]) < 2:
            return code
        widths = [" * ".join(self.blocks[i].text for i in g) or "1" for g in groups]
        if not groups[0]:
            widths = widths[1:]
        return f"tl.reshape({code}, [{', '.join(widths)}])"
