"""Places: the elements of a load or a store, as affine indices and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from backends.gpu.interior import Interior
from backends.gpu.masks import Masks
from backends.gpu.shapes import spread
from backends.gpu.tile import Check, Name, Place, Term
from backends.gpu.values import ZERO, scaled, times, total
from ir.nest.nest import Parameter, Slice, Tile
from ir.spec import Apply, Expr, Index, Number

Rows = Callable[[Tile], tuple[Name, tuple[str, ...], str]]


class Places:
    """Builds the places of one launch."""

    def __init__(
        self,
        masks: Masks,
        parameters: Mapping[str, Parameter],
        rows: Rows,
        named: Callable[[Name, Expr], Expr],
        wide: frozenset[str] = frozenset(),
    ):
        self.masks = masks
        self.blocks = masks.blocks
        self.parameters = parameters
        self.rows = rows  # gives the variable and axes of a tile of positions
        self.named = named  # gives an expression a name
        self.wide = wide  # tensors with 64-bit positions
        self.interior: Interior | None = None  # where the current block is for interior tiles only

    def place(
        self,
        tensor: str,
        region: tuple[Slice, ...],
        over: tuple[str, ...],
        padded: bool,
        extra: tuple[Expr, ...] = (),
        shape: tuple[Expr, ...] = (),
    ) -> Place:
        """The elements of a region, broadcast over axes.

        padded: positions may be outside of the tensor. extra: additional conditions. shape: of the
        tensor, where the region has other dimensions.
        """
        shape = shape or self.parameters[tensor].shape
        scalars, blocks, checks = [], [], list(extra)
        indices: dict[str, None] = {}
        for dim, one in enumerate(region):
            fixed, moving, used = self._position(one, over)
            indices.update(dict.fromkeys(used))
            inside = self.interior is not None and (tensor, dim, one) in self.interior.inside
            if padded and not inside and not self._certain(one, shape[dim]):
                at = self.named(Name("dim", tensor, dim), total([*moving, fixed]))
                checks += [Check(at), Check(at, below=shape[dim])]
                fixed, moving = (ZERO, [at]) if moving else (at, [])
            wide, stride = tensor in self.wide, shape[dim + 1 :]
            if fixed != ZERO:
                scalars.append(_term(fixed, stride, wide))
            blocks += [_term(m, stride, wide) for m in moving]
        masks = self.masks.bounds(tuple(indices), over)
        return Place(Name("pointer", tensor), (*scalars, *blocks), (*masks, *checks))

    def _position(
        self, one: Slice, over: tuple[str, ...]
    ) -> tuple[Expr, list[Expr], tuple[str, ...]]:
        """A position along one dimension: its scalar part, its tensor parts, and the indices of the latter."""
        if one.rows is not None:
            name, axes, _ = self.rows(one.rows)
            if not axes:
                return name, [], ()
            return ZERO, [spread(name, axes, over)], axes
        fixed, moving, used = [], [], []
        for index, step in one.terms:
            if self.blocks[index].zero:
                continue
            if self.blocks[index].scalar:
                fixed.append(scaled(Index(index), step))
            else:
                at = spread(Name("positions", index), (index,), over)
                moving.append(scaled(at, step))
                used.append(index)
        return total([*fixed, one.offset]), moving, tuple(used)

    def _certain(self, one: Slice, size: Expr) -> bool:
        """Whether a position is certainly in bounds: along a single index of the same size, or a constant."""
        if one.rows is None and not one.terms and isinstance(one.offset, Number):
            known = isinstance(size, Number) and 0 <= one.offset.value < size.value
            return known or one.offset == ZERO  # a size is at least one
        plain = one.rows is None and len(one.terms) == 1 and one.terms[0][1] == 1
        return plain and one.offset == ZERO and self.blocks[one.terms[0][0]].size == size


def _term(value: Expr, stride: tuple[Expr, ...], wide: bool) -> Term:
    """A position times the sizes of inner dimensions; constants are multiplied here."""
    if wide:
        return Term(value, stride, wide)
    if stride == (Number(1),):
        return Term(value)
    if not stride or not isinstance(value, Number) or value.value < 0:
        return Term(value, stride)
    number, first = _leading(stride[0])
    return Term(Number(value.value * number), (*first, *stride[1:]))


def _leading(size: Expr) -> tuple[int, tuple[Expr, ...]]:
    """The constant factor at the start of a product, and the rest of it."""
    if isinstance(size, Number) and isinstance(size.value, int):
        return size.value, ()
    if isinstance(size, Apply) and size.function == "mul":
        number, rest = _leading(size.args[0])
        if number != 1 or not rest:
            return number, (times(rest[0], size.args[1]) if rest else size.args[1],)
    return 1, (size,)
