"""Matmuls as calls of the microkernel. All other statements are loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from backends.shared.loops import Assign, Elements, Extents, Loops, computed_dtype, over
from backends.shared.places import At, Count, Place, flat
from ir.nest.nest import Dot, Statement, Tile
from ir.nest.steps import tile_axes


@dataclass(frozen=True, slots=True)
class Packed:
    """An element of an operand or of the result of a matmul."""

    product: str
    part: str
    row: Place
    column: Place


@dataclass(frozen=True, slots=True)
class Product:
    """A matmul: packed operands, the multiplication, and the store of the result."""

    value: str
    dtype: str  # dtype of its operands
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    over: tuple[str, ...]
    batch: Extents
    parts: tuple[Elements, ...]  # loops that pack a and b
    # start of the result and distance of its rows, if it is written directly
    onto: tuple[Place, str] | None
    accumulates: bool
    result: Elements  # loops that copy the result if there is no `onto`


class Statements(Loops):
    """The statements of one launch."""

    vector = 16

    def nodes(self, s: Statement, once: bool) -> Iterator[object]:
        """The nodes of a statement."""
        if isinstance(s, Dot):
            yield self._product(s)
        else:
            yield from super().nodes(s, once)

    def _product(self, s: Dot) -> Product:
        """A matmul as a Product. Operand a has the rows of the value, because the last axis of the
        value always belongs to b."""
        names, a, b = self.values[s.value].names, s.a, s.b
        of_a, of_b = (tile_axes(t, self.values) for t in (a, b))
        own = [n for n in names if (n in of_a) != (n in of_b)]
        if own and own[-1] in of_a:
            a, b, of_a, of_b = b, a, of_b, of_a
        batch = tuple(n for n in names if (n in of_a) == (n in of_b))
        rows = tuple(n for n in names if n in of_a and n not in batch)
        columns = tuple(n for n in names if n in of_b and n not in batch)
        dtype = computed_dtype(self.values[s.value].dtype)
        of_bf16 = dtype == "f32" and {self.values[t.value].dtype for t in (a, b)} == {"bf16"}

        def packed(part: str, tile: Tile, axes: tuple[str, ...], *places: Place) -> Elements:
            order = tuple(n for n in axes if n not in batch)
            found = self.read(tile, set(axes)) if of_bf16 else self.computed(tile, dtype)
            put = Assign(Packed(s.value, part, *places), found)
            return Elements(over(order), (put,), unordered=bool(order))

        inner, onto = (*rows, *columns), None
        in_place = len(columns) == 1 and len(rows) < 2 and names[-len(inner) :] == inner
        if in_place and dtype == self.values[s.value].dtype:
            places = [At(places=((n if n in batch else "", 1),)) for n in names]
            extents = list(self.extents(s.value).values())
            onto = flat(places, extents), extents[-1]
        m, n, k = map(_flattened, (rows, columns, s.over))
        copied = Assign(self.element(s.value), Packed(s.value, "c", m, n), s.accumulate)
        return Product(
            value=s.value,
            dtype="bf16" if of_bf16 else dtype,
            rows=rows,
            columns=columns,
            over=s.over,
            batch=over(batch),
            parts=(packed("a", a, of_a, m, k), packed("b", b, of_b, k, n)),
            onto=onto,
            accumulates=s.accumulate,
            result=Elements(over(inner), (copied,), unordered=bool(inner)),
        )


def _flattened(indices: tuple[str, ...]) -> Place:
    """Several indices as one, with the last innermost."""
    return flat([At(places=((i, 1),)) for i in indices], list(map(Count, indices)))
