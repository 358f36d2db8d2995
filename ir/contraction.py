"""Contractions: sums of products that a matrix unit can take, recognised by their indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.memo import kept
from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Range, Read, Reduce


@dataclass(frozen=True, slots=True)
class Contraction:
    """sum(a * b, over), a batched matmul."""

    a: Expr  # operand A: a product of factors over its indices
    b: Expr  # operand B
    batch: tuple[str, ...]  # indices of both operands and the result
    rows: tuple[str, ...]  # M: indices of a and the result
    columns: tuple[str, ...]  # N: indices of b and the result
    over: tuple[str, ...]  # K: indices of both operands, summed over


@kept
def indices(expr: Expr) -> tuple[str, ...]:
    """The indices that occur in an expression, each once, in order."""
    return tuple(dict.fromkeys(n.name for n in expr.walk() if isinstance(n, Index)))


def factors(expr: Expr) -> tuple[Expr, ...]:
    """The factors of a product; the expression itself if it is no product."""
    if isinstance(expr, Apply) and expr.function == "mul":
        return tuple(f for a in expr.args for f in factors(a))
    return (expr,)


def product(parts: tuple[Expr, ...]) -> Expr:
    """The product of expressions, in order."""
    whole, *rest = parts
    for part in rest:
        whole = Apply("mul", (whole, part))
    return whole


@kept
def contraction(equation: Equation) -> Contraction | None:
    """The contraction that an equation computes; None if it is no contraction."""
    value = equation.value
    if not isinstance(value, Reduce) or value.reduction != "sum":
        return None
    parts = factors(value.body)
    if len(parts) < 2:
        return None
    over = set(value.over)
    # Each operand is built around a read that has all of the K indices.
    anchors = [p for p in parts if over <= set(indices(p)) and _plain(p)]
    for a in anchors:
        for b in anchors:
            if a is not b and (found := _split(equation, parts, a, b)):
                return found
    return None


def fills(found: Contraction, ranges: Mapping[str, Range]) -> bool:
    """Whether a contraction has M and N dimensions of more than one element.

    Only then can it use a matrix unit on machines that hold tiles in registers.
    """
    return all(
        any(ranges[i].high != Number(1) for i in side) for side in (found.rows, found.columns)
    )


def _plain(expr: Expr) -> bool:
    """Whether a factor is a single read, possibly cast: an operand is built around one."""
    inner = expr.value if isinstance(expr, Cast) else expr
    return isinstance(inner, Read)


def _split(equation: Equation, parts: tuple[Expr, ...], a: Expr, b: Expr) -> Contraction | None:
    """Assigns each factor to operand A or B.

    None if a factor belongs to neither, or if the result has no M dimension.
    """
    left, right = [a], [b]
    for part in parts:
        if part is a or part is b:
            continue
        inside = set(indices(part))
        if inside <= set(indices(a)):
            left.append(part)
        elif inside <= set(indices(b)):
            right.append(part)
        else:
            return None
    of_a, of_b = set(indices(a)), set(indices(b))
    # The part index of a split-K bounds the range only: it is no dimension of the matmul.
    apart = {i for r in equation.reduce.ranges if r.partial for i in indices(r)}
    kept = [i for i in equation.indices if i in of_a | of_b or i not in apart]
    rows = tuple(i for i in kept if i in of_a and i not in of_b)
    columns = tuple(i for i in kept if i in of_b and i not in of_a)
    batch = tuple(i for i in kept if i in of_a and i in of_b)
    if not rows or len(rows) + len(columns) + len(batch) != len(kept):
        return None
    return Contraction(
        product(tuple(left)), product(tuple(right)), batch, rows, columns, equation.reduce.over
    )


def sums(e: Equation) -> bool:
    """Whether an equation is a plain sum over rectangular ranges."""
    value = e.value
    if not isinstance(value, Reduce) or value.reduction != "sum" or e.accumulate:
        return False
    return not any(r.jagged for r in value.ranges)
