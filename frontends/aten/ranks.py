"""Ranks: how many elements of a line come before each, which tells its place in sorted order.

NaN comes after all numbers, and of equal elements the first comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from frontends.builder import Builder, Meta, Value
from frontends.expressions import Term, call, cast, where
from ir.dtypes import is_float
from ir.spec import Apply, Expr


def ranked(b: Builder, value: Value, dim: int, descending: bool = False) -> Value:
    """The rank of each element along a dimension, from 0."""

    def one(*at: Expr) -> Expr:
        own, other = at[dim], at[-1]
        mine = _comparable(value, at[:-1])
        theirs = _comparable(value, swapped(at[:-1], dim, other))
        less = (theirs > mine) if descending else (theirs < mine)
        same: Expr = Apply("eq", (theirs, mine))
        if is_float(value.dtype):
            mine_nan, theirs_nan = call("isnan", mine), call("isnan", theirs)
            earlier, later = (mine_nan, theirs_nan) if not descending else (theirs_nan, mine_nan)
            less = less | (earlier & ~later)
            same = same | (mine_nan & theirs_nan)
        return where(less | (same & (other < own)), 1, 0)

    meta = Meta("i32", value.shape)
    return b.reduce("sum", meta, (value.shape[dim],), one, "rank")


def places(b: Builder, ranks: Value, dim: int, count: Expr | None = None) -> Value:
    """Where the element of each rank stands along a dimension; of the first ranks, or of all."""
    size = ranks.shape[dim]
    shape = swapped(ranks.shape, dim, size if count is None else count)

    def place(*at: Expr) -> Expr:
        here = swapped(at[:-1], dim, at[-1])
        return where(Apply("eq", (ranks.at(*here), at[dim])), at[-1], 0)

    # One rank is met once. Their maximum is a place whatever the ranks are, as of drawn inputs.
    return b.reduce("max", Meta("i32", shape), (size,), place, "places")


def sorted_line(b: Builder, value: Value, ranks: Value) -> Value:
    """The elements of a line by rank."""
    found = places(b, ranks, 0)
    return b.define(value.meta, lambda i: value.at(found.at(i)), "sorted")


def swapped(at: Sequence[Expr], dim: int, position: Term) -> tuple[Term, ...]:
    """Positions with another one in a dimension."""
    made = list(at)
    made[dim] = position
    return tuple(made)


def _comparable(value: Value, at: Sequence[Expr]) -> Expr:
    found = value.wide(*at)
    return cast("i32", found) if value.dtype == "b8" else found
