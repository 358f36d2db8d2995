"""Vector accesses: which axis of a place is contiguous in global memory, and when runs are aligned."""

from __future__ import annotations

from collections.abc import Mapping

from backends.gpu import tile as of
from backends.gpu.threads.thread import All
from backends.gpu.tile import Even, Name, Place
from backends.gpu.values import product
from ir.spec import Apply, Expr, Index, Number


def contiguous(place: Place) -> str:
    """The index along which a place is contiguous in memory; empty where there is none."""
    for term in place.terms:
        if isinstance(term, of.Term) and not term.stride:
            for name in positions(term.value):
                if coefficient(term.value, name.stem) == 1:
                    return name.stem
    return ""


def positions(expr: Expr) -> list[Name]:
    """The positions in an expression."""
    return [n for n in expr.walk() if isinstance(n, Name) and n.sort == "positions"]


def coefficient(expr: Expr, index: str) -> int | None:
    """The coefficient of an index's position in a sum; None where it is in another expression."""
    match expr:
        case Name(sort="positions", stem=stem):
            return int(stem == index)
        case of.Spread(value):
            return coefficient(value, index)
        case Apply("add", (a, b)):
            left, right = coefficient(a, index), coefficient(b, index)
            return None if left is None or right is None else left + right
        case Apply("mul", (a, Number(by))):
            inner = coefficient(a, index)
            return None if inner is None else inner * int(by)
    return None if any(n.stem == index for n in positions(expr)) else 0


def aligned(
    place: Place, index: str, count: int, tiles: Mapping[str, int], ends: Mapping[str, Expr]
) -> Expr | None:
    """The condition on sizes under which runs of `count` elements along an index are aligned and
    masked as a whole. None where no size satisfies it.

    tiles: tile size of each tiled index. ends: the size that bounds an index's positions.
    """
    needed: list[Even] = []
    for term in place.terms:
        if not isinstance(term, of.Term):
            return None
        if term.stride:
            if not _multiple(term.value, count, tiles):
                needed.append(Even(product(list(term.stride)), Number(count)))
        elif not _multiple(_without(term.value, index), count, tiles):
            return None
    for check in place.mask:
        named = [n for n in check.walk() if isinstance(n, Name) and n.stem == index]
        if not named:
            continue
        if any(n.sort != "mask" for n in named) or index not in ends:
            return None
        needed.append(Even(ends[index], Number(count)))
    open_ones = {n: holds for n in needed if (holds := _holds(n)) is not True}
    return None if False in open_ones.values() else All(tuple(open_ones))


def _without(expr: Expr, index: str) -> Expr:
    """A sum without an index's positions; where that index is tiled, its origin remains."""
    match expr:
        case Name(sort="positions", stem=stem) if stem == index:
            return Index(index)
        case of.Spread(value):
            return _without(value, index)
        case Apply("add", (a, b)):
            return Apply("add", (_without(a, index), _without(b, index)))
    return expr


def _multiple(expr: Expr, count: int, tiles: Mapping[str, int]) -> bool:
    """Whether an expression is certainly a multiple of a number."""
    match expr:
        case Number(value):
            return int(value) % count == 0
        case Index(name):
            return tiles.get(name, 0) % count == 0
        case Name(sort="origin", stem=stem):
            return tiles.get(stem, 0) % count == 0
        case Apply("add" | "sub", args):
            return all(_multiple(a, count, tiles) for a in args)
        case Apply("mul", args):
            return any(_multiple(a, count, tiles) for a in args)
    return False


def _holds(condition: Even) -> bool | None:
    """Whether a condition holds at all sizes (True) or at none (False); None: at some."""
    match condition:
        case Even(Number(size), Number(width)):
            return size % width == 0
        case Even(Apply("mul", args), width):
            return any(_holds(Even(a, width)) for a in args) or None
    return None
