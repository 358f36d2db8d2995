"""Size expressions as polynomials: compares two, and decides whether one can be negative."""

from __future__ import annotations

from collections.abc import Mapping

from ir.print import expression_text
from ir.spec import Apply, Expr, Number, Size

# By monomial: its coefficient. A monomial is the sorted names of its sizes, repeated for powers; ()
# is the constant. A part that is no polynomial (`H // 2`) is a variable named by its text.
Polynomial = dict[tuple[str, ...], int]


def polynomial(expr: Expr, derived: Mapping[str, Expr]) -> Polynomial:
    """The polynomial over free sizes that a size expression equals."""
    match expr:
        case Number(value):
            return {(): int(value)} if value else {}
        case Size(name):
            return polynomial(derived[name], derived) if name in derived else {(name,): 1}
        case Apply("neg", (a,)):
            return scaled(polynomial(a, derived), -1)
        case Apply("add", (a, b)):
            return added(polynomial(a, derived), polynomial(b, derived))
        case Apply("sub", (a, b)):
            return subtracted(polynomial(a, derived), polynomial(b, derived))
        case Apply("mul", (a, b)):
            return _multiplied(polynomial(a, derived), polynomial(b, derived))
    return {(expression_text(expr),): 1}


def added(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a + b`."""
    terms = {key: a.get(key, 0) + b.get(key, 0) for key in (*a, *b)}
    return {key: c for key, c in terms.items() if c}


def scaled(a: Polynomial, by: int) -> Polynomial:
    """`by * a`."""
    return {key: c * by for key, c in a.items() if by}


def subtracted(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a - b`."""
    return added(a, scaled(b, -1))


def same(a: Expr, b: Expr, derived: Mapping[str, Expr]) -> bool:
    """Whether two size expressions are known to be equal for all sizes."""
    return a == b or polynomial(a, derived) == polynomial(b, derived)


def never_negative(a: Polynomial) -> bool:
    """Whether `a >= 0` for certain, given that every size is at least 1."""
    # Every size is at least 1: if no term decreases, the value at all ones is the minimum.
    grows = all(c > 0 for key, c in a.items() if key)
    return _known(a) and grows and sum(a.values()) >= 0


def turns_negative(a: Polynomial) -> bool:
    """Whether `a` decreases as sizes grow and becomes negative, for certain."""
    falls = all(c < 0 for key, c in a.items() if key)
    return _known(a) and falls and (len(a) > 1 or sum(a.values()) < 0)


def _known(a: Polynomial) -> bool:
    return all(name.isidentifier() for key in a for name in key)


def _multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    product: Polynomial = {}
    for left, c in a.items():
        for right, d in b.items():
            product = added(product, {tuple(sorted(left + right)): c * d})
    return product
