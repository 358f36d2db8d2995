"""Outside: what a tile holds where positions are not inside, and how it is made neutral.

Whole blocks are computed, so what lies outside along a folded index must not count. Loads fill
it with 0, which sums and products keep; else it is replaced before a fold.
"""

from __future__ import annotations

from collections.abc import Mapping

from backends.triton.emit import spelling
from backends.triton.emit.blocks import Blocks
from backends.triton.emit.expressions import spread
from ir.lower.limits import NEUTRAL
from ir.nest.nest import Load, Map, Tile
from ir.nest.steps import tile_axes
from ir.spec import Apply, Cast, Expr, Number

_ZERO = Number(0)


class Outside:
    """What is known of one launch's values outside. deferred: loads that are done at their use."""

    def __init__(self, blocks: Blocks, deferred: Mapping[str, Load]):
        self.blocks = blocks
        self.deferred = deferred
        self.zeros: dict[str, frozenset[str]] = {}

    def loaded(self, s: Load, axes: tuple[str, ...], shape: tuple[Expr, ...]) -> None:
        """Notes a load from a tensor of a shape: it fills with 0 unless it is padded with something
        else; the copy engine does so only outside the tensor, not outside an index."""
        if s.pad:
            return
        zeros = {i for i in axes if self.blocks[i].checks}
        if s.bulk:
            dims = zip(s.region, shape, strict=True)
            ends = {
                one.terms[0][0]: size for one, size in dims if one.terms and one.offset == _ZERO
            }
            zeros = {i for i in zeros if ends.get(i) == self.blocks[i].size}
        self.zeros[s.value] = frozenset(zeros)

    def mapped(self, s: Map) -> None:
        """Notes a map."""
        self.zeros[s.value] = self._zero(s.expression)

    def neutral(
        self,
        tile: Tile,
        code: str,
        axes: tuple[str, ...],
        dtype: str,
        over: tuple[str, ...],
        fold: str,
    ) -> str:
        """A tile with what lies outside along `over` made neutral for a fold."""
        checked = [i for i in over if self.blocks[i].checks]
        if fold == "sum":
            zero = self._known(tile)
            checked = [i for i in checked if i not in zero]
        if not checked:
            return code
        masks = " & ".join(spread(spelling.inside(i), (i,), axes) for i in checked)
        number = spelling.number(spelling.typed(NEUTRAL[fold], dtype))
        return f"tl.where({masks}, {code}, {number})"

    def _known(self, tile: Tile) -> frozenset[str]:
        if tile.value in self.deferred:
            s = self.deferred[tile.value]
            return frozenset() if s.pad else frozenset(tile_axes(tile, self.blocks.values))
        return self.zeros.get(tile.value, frozenset())

    def _zero(self, expr: Expr) -> frozenset[str]:
        """The axes along which an expression is 0 outside, for certain and without any other
        part that could be infinite there."""
        match expr:
            case Tile():
                return self._known(expr)
            case Cast(_, value) | Apply("neg", (value,)):
                return self._zero(value)
            case Apply("pow" | "square", (value, *_)):
                return self._zero(value)
            case Apply("mul", args):
                zeros = [self._zero(a) for a in args]
                some = frozenset().union(*zeros)
                axes = [self._axes(a) for a in args]
                return frozenset(
                    i
                    for i in some
                    if all(i in z or i not in x for z, x in zip(zeros, axes, strict=True))
                )
        return frozenset()

    def _axes(self, expr: Expr) -> set[str]:
        tiles = (n for n in expr.walk() if isinstance(n, Tile))
        return {i for t in tiles for i in tile_axes(t, self.blocks.values)}
