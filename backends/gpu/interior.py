"""Interior tiles: where windows exceed the tensor in few tiles only, the other tiles skip bounds
checks.

    before: x = load x[j_at + j + k - 4] if 0 <= j_at + j + k - 4 < 65536 else 0        for all tiles of j
    after:  if min(j_at - 4, 65021 - j_at) >= 0:  x = load x[j_at + j + k - 4]
            else:                                 the same as before
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from backends.gpu.blocks import Blocks
from backends.gpu.tile import Check
from ir.nest.nest import Dot, Launch, Load, Slice, Store
from ir.spec import Apply, Expr, Index, Number

LEAST = 0.5  # least share of interior tiles along an index

_Span = tuple[int, int]  # the least and the greatest position


@dataclass(frozen=True, slots=True)
class Interior:
    """The tiles of a launch whose positions are all in bounds."""

    # By grid index: the least and the greatest origin of interior tiles.
    origins: dict[str, _Span] = field(default_factory=dict)
    # A tensor, its dimension, positions along it
    inside: frozenset[tuple[str, int, Slice]] = frozenset()

    @property
    def condition(self) -> Expr:
        """Whether a thread block's tile is interior."""
        least: Expr | None = None
        for index, (low, high) in self.origins.items():
            above = Apply("sub", (Index(index), Number(low))) if low else Index(index)
            room = Apply("minimum", (above, Apply("sub", (Number(high), Index(index)))))
            least = room if least is None else Apply("minimum", (least, room))
        assert least is not None, "some index moves"
        return Check(least)

    @property
    def whole(self) -> frozenset[str]:
        """The indices along which interior tiles have no position out of bounds."""
        return frozenset(self.origins)


def interior(launch: Launch, blocks: Blocks) -> Interior | None:
    """The interior tiles of a launch with windows; None where all tiles are alike, or where too few are interior."""
    plain = not (launch.resident or launch.meeting or launch.stream_k or launch.cluster)
    statements = tuple(launch.statements())
    if not plain or any(isinstance(s, Dot) or _in_bulk(s) for s in statements):
        return None
    return _Search(launch, blocks).found(s for s in statements if isinstance(s, Load))


def _in_bulk(s: object) -> bool:
    return isinstance(s, Load | Store) and s.bulk


class _Search:
    """Examines the padded loads of a launch."""

    def __init__(self, launch: Launch, blocks: Blocks):
        self.blocks = blocks
        self.grid = {g.index: g for g in launch.grid}
        self.shapes = {p.name: p.shape for p in launch.parameters}
        self.origins: dict[str, _Span] = {}

    def found(self, loads: Iterator[Load]) -> Interior | None:
        """The interior tiles for these loads; None where some positions are never known to be in bounds."""
        inside = set()
        for s in (s for s in loads if s.pad is not None):
            for dim, one in enumerate(s.region):
                if one.rows is None and not any(self._moves(i) for i, _ in one.terms):
                    continue  # checked once for all threads, if at all
                if not self._is_inside(one, self.shapes[s.tensor][dim]):
                    return None
                inside.add((s.tensor, dim, one))
        if not self.origins or not all(map(self._is_worth, self.origins)):
            return None
        return Interior(dict(self.origins), frozenset(inside))

    def _moves(self, index: str) -> bool:
        return not self.blocks[index].scalar

    def _is_inside(self, one: Slice, size: Expr) -> bool:
        """Whether positions are in bounds for all tiles, or for some origins of an index, which are recorded."""
        if (
            one.rows is not None
            or not isinstance(one.offset, Number)
            or not isinstance(size, Number)
        ):
            return False
        moved = [(i, step) for i, step in one.terms if i in self.grid]
        spans = [self._span(i, step) for i, step in one.terms]
        if len(moved) > 1 or any(step < 0 for _, step in one.terms) or None in spans:
            return False
        low = int(one.offset.value) + sum(s[0] for s in spans if s)
        high = int(one.offset.value) + sum(s[1] for s in spans if s)
        if not moved:
            return low >= 0 and high < size.value
        ((index, step),) = moved
        first, last = -(low // step), (int(size.value) - 1 - high) // step
        own = self._own(index)
        if own is None:
            return False
        if first > own[0] or last < own[1] or self.blocks[index].checks:
            known = self.origins.get(index, own)
            self.origins[index] = max(first, known[0]), min(last, known[1])
        return True

    def _span(self, index: str, step: int) -> _Span | None:
        """The range that an index adds to a position; for a grid index, relative to its tile's origin."""
        block = self.blocks[index]
        if not block.width or not isinstance(block.size, Number):
            return None
        last = block.width - 1
        if index not in self.grid and block.tile:
            last += int(block.size.value) - 1
            last -= block.width - 1 if int(block.size.value) % block.tile == 0 else 0
        return 0, step * last

    def _own(self, index: str) -> _Span | None:
        """The origins at which a tile of the grid is whole; None where origins do not determine it."""
        block = self.blocks[index]
        if block.tile != block.width or not isinstance(block.size, Number):
            return None
        return 0, int(block.size.value) - block.width

    def _is_worth(self, index: str) -> bool:
        low, high = self.origins[index]
        tile, size = self.grid[index].tile, self.blocks[index].size
        assert isinstance(size, Number), "it is known"
        return (high // tile - -(-low // tile) + 1) * tile >= LEAST * int(size.value)
