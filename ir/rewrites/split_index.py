"""Splits an index into parts of a fixed length, the last of which can be shorter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ir.affine import fold_constants
from ir.contraction import indices
from ir.rewrites.equations import fresh
from ir.spec import Apply, Expr, Index, Number, Range, Read, Spec
from ir.visit import rebuilt, renamed


@dataclass(frozen=True, slots=True)
class SplitIndex:
    """An index over `size` as `length * part + inside`."""

    over: str
    size: Expr
    length: int
    part: Index
    inside: Index

    @staticmethod
    def of(spec: Spec, over: str, size: Expr, length: int) -> SplitIndex:
        """The split, with index names that the spec does not have."""
        part, inside = fresh(spec, f"{over}_part"), fresh(spec, f"{over}_in")
        return SplitIndex(over, size, length, Index(part), Index(inside))

    @property
    def place(self) -> Expr:
        """The index as an expression of the part and the position inside it."""
        return Apply("add", (self.start, self.inside))

    @property
    def start(self) -> Expr:
        """The first position of a part."""
        return Apply("mul", (Number(self.length), self.part))

    @property
    def count(self) -> Expr:
        """The number of parts."""
        full = fold_constants("add", self.size, Number(self.length - 1))
        if isinstance(full, Number):
            return Number(full.value // self.length)
        return Apply("floordiv", (full, Number(self.length)))

    @property
    def filled(self) -> Expr:
        """The number of positions of a part that are in the range."""
        left = Apply("sub", (self.size, self.start))
        return Apply("minimum", (Number(self.length), left))

    @property
    def range(self) -> Range:
        """The range of the position inside a part."""
        return Range(self.inside.name, Number(0), Number(self.length))

    def at(self, expr: Expr) -> Expr:
        """An expression at the split index; reads past the end are padded with 0."""
        return _padded(renamed(expr, {self.over: self.place}), self.part.name)

    def masked(self, expr: Expr, end: float) -> Expr:
        """The same, with the value `end` past the end."""
        within = Apply("lt", (self.place, self.size))
        return Apply("where", (within, self.at(expr), Number(end)))


def _padded(expr: Expr, index: str) -> Expr:
    """The expression with its reads along an index padded with 0."""
    made = rebuilt(expr, lambda x: _padded(x, index))
    if isinstance(made, Read) and made.pad is None and index in indices(made):
        return replace(made, pad=0.0)
    return made
