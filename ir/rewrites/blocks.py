"""Blocks: the range of an index in parts of a fixed length, the last of which may be shorter."""

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
        """Blocks with names that the spec does not have."""
        part, inside = fresh(spec, f"{over}_part"), fresh(spec, f"{over}_in")
        return SplitIndex(over, size, length, Index(part), Index(inside))

    @property
    def place(self) -> Expr:
        """The index, by its block and the place in it."""
        return Apply("add", (self.start, self.inside))

    @property
    def start(self) -> Expr:
        """Where a block starts."""
        return Apply("mul", (Number(self.length), self.part))

    @property
    def count(self) -> Expr:
        """How many blocks there are."""
        full = fold_constants("add", self.size, Number(self.length - 1))
        if isinstance(full, Number):
            return Number(full.value // self.length)
        return Apply("floordiv", (full, Number(self.length)))

    @property
    def filled(self) -> Expr:
        """How many places of a block are within the range."""
        left = Apply("sub", (self.size, self.start))
        return Apply("minimum", (Number(self.length), left))

    @property
    def range(self) -> Range:
        """That of the place in a block."""
        return Range(self.inside.name, Number(0), Number(self.length))

    def at(self, expr: Expr) -> Expr:
        """An expression at the place in the block; 0 is read past the end."""
        return _padded(renamed(expr, {self.over: self.place}), self.part.name)

    def masked(self, expr: Expr, end: float) -> Expr:
        """The same, with another value past the end."""
        within = Apply("lt", (self.place, self.size))
        return Apply("where", (within, self.at(expr), Number(end)))


def _padded(expr: Expr, index: str) -> Expr:
    """The expression with 0 read past the end of what an index moves along."""
    made = rebuilt(expr, lambda x: _padded(x, index))
    if isinstance(made, Read) and made.pad is None and index in indices(made):
        return replace(made, pad=0.0)
    return made
