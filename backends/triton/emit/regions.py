"""Regions: where a load or a store finds its elements, as pointers and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.triton.emit import spelling
from backends.triton.emit.blocks import Blocks
from backends.triton.emit.expressions import spread
from ir.nest.nest import Parameter, Slice, Tile
from ir.spec import Expr, Number

Rows = Callable[[Tile], tuple[str, tuple[str, ...], str]]


@dataclass(frozen=True, slots=True)
class Place:
    """Elements of a global tensor. pointers: their addresses.  mask: which of them are there,
    empty where all are."""

    pointers: str
    mask: str


class Regions:
    """Writes the places of one launch.

    rows: gives the variable and axes of a tile of positions.  named: gives an expression a name.
    wide: the tensors whose positions are numbers of 64 bits.
    """

    def __init__(
        self,
        blocks: Blocks,
        parameters: Mapping[str, Parameter],
        rows: Rows,
        named: Callable[[str, str], str],
        wide: frozenset[str] = frozenset(),
    ):
        self.blocks = blocks
        self.parameters = parameters
        self.rows = rows
        self.named = named
        self.wide = wide

    def place(
        self,
        tensor: str,
        region: tuple[Slice, ...],
        over: tuple[str, ...],
        padded: bool,
        extra: tuple[str, ...] = (),
    ) -> Place:
        """The elements of a region, spread over axes.

        padded: positions outside the tensor are asked for too.  extra: more conditions.
        """
        shape = self.parameters[tensor].shape
        scalars, blocks, checks = [], [], list(extra)
        indices: dict[str, None] = {}
        for dim, one in enumerate(region):
            stride = _stride(shape[dim + 1 :])
            fixed, moving, used = self._position(one, over)
            indices.update(dict.fromkeys(used))
            if padded and (one.terms or one.rows) and not self._certain(one, shape[dim]):
                at = self.named(f"{tensor}_dim{dim}", spelling.total([*moving, fixed]))
                checks += [f"({at} >= 0)", f"({at} < {spelling.size(shape[dim])})"]
                fixed, moving = ("0", [at]) if moving else (at, [])
            times = _times_wide if tensor in self.wide else _times
            if fixed != "0":
                scalars.append(times(fixed, stride))
            blocks += [times(m, stride) for m in moving]
        masks = [spread(spelling.inside(i), (i,), over) for i in indices if self.blocks[i].checks]
        parts = [spelling.pointer(tensor), *scalars, *blocks]
        return Place(" + ".join(parts), " & ".join([*masks, *checks]))

    def indices(self, region: tuple[Slice, ...]) -> tuple[str, ...]:
        """The indices with an axis that a region runs over."""
        found: dict[str, None] = {}
        for one in region:
            if one.rows is not None:
                found.update(dict.fromkeys(self.rows(one.rows)[1]))
            found.update(dict.fromkeys(i for i, _ in one.terms if not self.blocks[i].scalar))
        return tuple(found)

    def _position(
        self, one: Slice, over: tuple[str, ...]
    ) -> tuple[str, list[str], tuple[str, ...]]:
        """Along one dimension: the part that is a scalar, the parts that are blocks, and the
        indices of the blocks."""
        if one.rows is not None:
            name, axes, _ = self.rows(one.rows)
            if not axes:
                return name, [], ()
            return "0", [spread(name, axes, over)], axes
        fixed, moving, used = [], [], []
        for index, step in one.terms:
            if self.blocks[index].zero:
                continue
            if self.blocks[index].scalar:
                fixed.append(_times(spelling.origin(index), str(step)))
            else:
                code = spread(spelling.offsets(index), (index,), over)
                moving.append(_times(code, str(step)))
                used.append(index)
        if one.offset != Number(0):
            fixed.append(spelling.size(one.offset))
        return spelling.total(fixed), moving, tuple(used)

    def _certain(self, one: Slice, size: Expr) -> bool:
        """Whether a position along one plain index of the same size cannot lie outside."""
        plain = one.rows is None and len(one.terms) == 1 and one.terms[0][1] == 1
        return plain and one.offset == Number(0) and self.blocks[one.terms[0][0]].size == size


def _stride(inner: tuple[Expr, ...]) -> str:
    return " * ".join(spelling.factor(e) for e in inner)


def _times(code: str, stride: str) -> str:
    if stride in ("", "1"):
        return code
    if code.isdigit():
        return _numbered(int(code), stride)
    loose = any(f" {sign} " in code for sign in ("+", "-"))
    return f"({code}) * {stride}" if loose else f"{code} * {stride}"


def _times_wide(code: str, stride: str) -> str:
    """The same in 64 bits; what lies side by side is added as it is."""
    return f"tl.cast({code}, tl.int64) * {stride}" if stride else code


def _numbered(number: int, stride: str) -> str:
    """The product of a number and a stride, whose own first factor may be a number."""
    first, _, rest = stride.partition(" * ")
    if first.isdigit():
        number, stride = number * int(first), rest
    return " * ".join(part for part in ("" if number == 1 else str(number), stride) if part) or "1"
