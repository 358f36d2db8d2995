"""Masks: what tiles hold out of bounds, and how that becomes an identity element.

Tiles are computed as a whole, so out-of-bounds elements along a reduced index must not contribute.
Loads fill them with 0, which is the identity of sums and matmuls. Otherwise they are replaced
before a reduction.
"""

from __future__ import annotations

from collections.abc import Mapping

from backends.gpu.blocks import Blocks
from backends.gpu.shapes import spread
from backends.gpu.tile import Masked, Name
from backends.gpu.values import ZERO, typed
from ir.functions import IDENTITY_ELEMENTS
from ir.nest.nest import Load, Map, Slice, Tile
from ir.nest.steps import tile_axes
from ir.spec import Apply, Cast, Expr


class Masks:
    """What one launch's values hold out of bounds."""

    def __init__(self, blocks: Blocks, late: Mapping[str, Load]):
        self.blocks = blocks
        self.late = late  # late loads
        self.zeros: dict[str, frozenset[str]] = {}
        self.whole: frozenset[str] = (
            frozenset()
        )  # indices whose tiles are whole in the current block

    def bounds(self, indices: tuple[str, ...], over: tuple[str, ...]) -> tuple[Expr, ...]:
        """The conditions, over axes, that positions of these indices are in bounds."""
        checked = (i for i in indices if self.blocks[i].checks and i not in self.whole)
        return tuple(spread(Name("mask", i), (i,), over) for i in checked)

    def loaded(self, s: Load, axes: tuple[str, ...]) -> None:
        """Records a load."""
        self.zeros[s.value] = self._filled(s, axes)

    def _filled(self, s: Load, axes: tuple[str, ...]) -> frozenset[str]:
        """The axes along which a load fills out-of-bounds elements with 0: all, unless it pads with
        another value. TMA does so only outside of the tensor, not outside of an index."""
        if s.pad:
            return frozenset()
        if not s.bulk:
            return frozenset(axes)
        shape = next(p.shape for p in self.blocks.launch.parameters if p.name == s.tensor)
        dims = zip(s.region, shape, strict=True)
        plain = [(one.terms[0][0], size) for one, size in dims if _plain(one)]
        return frozenset(i for i, size in plain if self.blocks[i].size == size)

    def mapped(self, s: Map) -> None:
        """Records a map."""
        self.zeros[s.value] = self._zero(s.expression)

    def identity(
        self,
        tile: Tile,
        value: Expr,
        axes: tuple[str, ...],
        dtype: str,
        over: tuple[str, ...],
        reduction: str,
    ) -> Expr:
        """The tile, with out-of-bounds elements along `over` replaced by the identity of a reduction."""
        checked = [i for i in over if self.blocks[i].checks and i not in self.whole]
        if reduction == "sum":
            zero = self._known(tile)
            checked = [i for i in checked if i not in zero]
        if not checked:
            return value
        return Masked(
            self.bounds(tuple(checked), axes), value, typed(IDENTITY_ELEMENTS[reduction], dtype)
        )

    def _known(self, tile: Tile) -> frozenset[str]:
        if tile.value in self.late:
            return self._filled(self.late[tile.value], tile_axes(tile, self.blocks.values))
        return self.zeros.get(tile.value, frozenset())

    def _zero(self, expr: Expr) -> frozenset[str]:
        """The axes along which an expression is certainly 0 out of bounds, without a part that
        could be infinite there."""
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


def _plain(one: Slice) -> bool:
    """Whether positions along a dimension are those of one index."""
    return len(one.terms) == 1 and one.terms[0][1] == 1 and one.offset == ZERO
