"""Simplifies quotients and remainders of sums of indices (mixed-radix arithmetic).

i * 4 + j, of j < 4:   (i * 4 + j) // 4 = i,   (i * 4 + j) % 4 = j
i, of i < 8:           i // 4 needs i = a * 4 + b with a < 2 and b < 4
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ir.spec import Apply, Expr, Index, Number
from ir.visit import rebuilt

_Sum = tuple[dict[str, int], int]  # by index: its factor; and a constant


def simplified(expr: Expr, extents: Mapping[str, int]) -> Expr:
    """Rewrites each sum, quotient and remainder in a position as a sum of multiples of indices,
    where it is one.

    Other parts of the position are unchanged.

    extents: by index, its number of values, from 0 on.
    """
    found = _sum(expr, extents)
    if found is None:
        return rebuilt(expr, lambda part: simplified(part, extents))
    terms, constant = found
    made: Expr | None = None
    for index, factor in sorted(terms.items(), key=lambda term: -term[1]):
        one = Index(index) if factor == 1 else Index(index) * factor
        made = one if made is None else made + one
    if made is None:
        return Number(constant)
    return made + constant if constant else made


def splits(expr: Expr, extents: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The index splits that would make a quotient or remainder a sum of indices.

    Each index comes with the number of values of its inner part.
    """
    if isinstance(expr, Apply) and expr.function in ("floordiv", "mod"):
        value, by = expr.args
        found = _sum(value, extents)
        if found is not None and isinstance(by, Number) and _sum(expr, extents) is None:
            for index, factor in found[0].items():
                inner = int(by.value) // factor if factor > 0 else 0
                whole = inner > 1 and by.value % factor == 0 and extents[index] % inner == 0
                if whole and inner < extents[index]:
                    yield index, inner
    for part in expr.children():
        yield from splits(part, extents)


def is_sum(expr: Expr) -> bool:
    """Whether no quotient or remainder is left."""
    return not any(isinstance(n, Apply) and n.function in ("floordiv", "mod") for n in expr.walk())


def _sum(expr: Expr, extents: Mapping[str, int]) -> _Sum | None:
    """An expression as a sum of multiples of indices; None if it is not one."""
    match expr:
        case Index(name):
            return {name: 1}, 0
        case Number(value) if type(value) is int:
            return {}, value
        case Apply("add" | "sub" as function, (a, b)):
            first, second = _sum(a, extents), _sum(b, extents)
            if first is None or second is None:
                return None
            sign = 1 if function == "add" else -1
            terms = dict(first[0])
            for index, factor in second[0].items():
                terms[index] = terms.get(index, 0) + sign * factor
            return {i: f for i, f in terms.items() if f}, first[1] + sign * second[1]
        case Apply("mul", (a, Number(by))) | Apply("mul", (Number(by), a)) if type(by) is int:
            found = _sum(a, extents)
            if found is None:
                return None
            return {i: f * by for i, f in found[0].items() if f * by}, found[1] * by
        case Apply("floordiv" | "mod" as function, (a, Number(by))) if type(by) is int and by > 0:
            return _divided(_sum(a, extents), by, function, extents)
    return None


def _divided(found: _Sum | None, by: int, function: str, extents: Mapping[str, int]) -> _Sum | None:
    """The quotient or remainder of a sum, split into multiples of the divisor and a rest below it.

    None if that split does not exist.
    """
    if found is None:
        return None
    terms, constant = found
    whole = {i: f // by for i, f in terms.items() if f % by == 0}
    rest = {i: f for i, f in terms.items() if f % by}
    quotient, left = divmod(constant, by)
    if any(f < 0 for f in rest.values()):
        return None
    if left + sum(f * (extents[i] - 1) for i, f in rest.items()) >= by:
        return None
    return (whole, quotient) if function == "floordiv" else (rest, left)
