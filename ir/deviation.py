"""Recognises squared deviations, the terms of a variance."""

from __future__ import annotations

from ir.contraction import indices
from ir.spec import Apply, Expr, Number, Reduce


def deviation(value: Reduce) -> tuple[Expr, Expr] | None:
    """x and c of a reduction's body `(x - c) ** 2`, in which c lacks the reduced indices.

    None for other bodies.
    """
    match value.body:
        case Apply("pow", (Apply("sub", (x, c)), Number(2))) | Apply(
            "square", (Apply("sub", (x, c)),)
        ):
            over = set(value.over)
            if over <= set(indices(x)) and not over & set(indices(c)):
                return x, c
        case Apply("mul", (Apply("sub", (x, c)) as one, other)) if one == other:
            over = set(value.over)
            if over <= set(indices(x)) and not over & set(indices(c)):
                return x, c
    return None
