"""Affine index expressions: integer multiples of indices plus a size expression."""

from __future__ import annotations

from dataclasses import dataclass

from ir.memo import kept
from ir.spec import Apply, Expr, Index, Number, Size


@dataclass(frozen=True, slots=True)
class Affine:
    """sum(coefficient * index) + offset."""

    terms: tuple[tuple[str, int], ...]  # (index, coefficient), in order of first appearance
    offset: Expr = Number(0)  # over sizes and integers only

    @property
    def index(self) -> str | None:
        """The index, if the expression is a plain index; else None."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and self.offset == Number(0):
            return self.terms[0][0]
        return None

    def coefficient(self, index: str) -> int:
        """The coefficient of an index; 0 if it does not occur."""
        return dict(self.terms).get(index, 0)


@kept
def affine(expr: Expr) -> Affine | None:
    """The affine form of an expression.

    None if it has none (data-dependent, or a product of indices).
    """
    match expr:
        case Index(name):
            return Affine(((name, 1),))
        case Number(v) if isinstance(v, int):
            return Affine((), Number(v))
        case Size(_):
            return Affine((), expr)
        case Apply("neg", (a,)):
            return _scale(affine(a), -1)
        case Apply("add", (a, b)):
            return _add(affine(a), affine(b))
        case Apply("sub", (a, b)):
            return _add(affine(a), _scale(affine(b), -1))
        case Apply("mul", (Number(v), b)) if isinstance(v, int):
            return _scale(affine(b), v)
        case Apply("mul", (a, Number(v))) if isinstance(v, int):
            return _scale(affine(a), v)
        case Apply("floordiv" | "mul" | "mod", _) if _constant(expr):
            return Affine((), expr)
    return None


def _constant(expr: Expr) -> bool:
    return all(isinstance(n, Number | Size | Apply) for n in expr.walk())


def _scale(a: Affine | None, by: int) -> Affine | None:
    if a is None:
        return None
    return Affine(
        tuple((i, c * by) for i, c in a.terms), fold_constants("mul", Number(by), a.offset)
    )


def _add(a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None:
        return None
    terms = dict(a.terms)
    for index, c in b.terms:
        terms[index] = terms.get(index, 0) + c
    return Affine(
        tuple((i, c) for i, c in terms.items() if c), fold_constants("add", a.offset, b.offset)
    )


def fold_constants(function: str, a: Expr, b: Expr) -> Expr:
    """The sum or product of two offsets, with constants folded."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value + b.value if function == "add" else a.value * b.value)
    if function == "add" and a == Number(0):
        return b
    if function == "add" and b == Number(0):
        return a
    if function == "mul" and a == Number(1):
        return b
    return Apply(function, (a, b))
