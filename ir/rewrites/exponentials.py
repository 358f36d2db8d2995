"""Exponentials and logarithms: fewer of them, by the laws of powers.

No exponential is split: exp(a) * exp(b) can overflow where exp(a + b) does not.
"""

from __future__ import annotations

from collections.abc import Iterable

from ir.rewrites.equations import locally
from ir.spec import Apply, Expr, Number, Spec
from ir.variant.bounds import positive


def join_exponentials(spec: Spec) -> list[Spec]:
    """before: exp(a) * exp(b), exp(a) / exp(b), 1.0 / exp(a), exp(a) ** 2
    after:  exp(a + b), exp(a - b), exp(-a), exp(2 * a)

    When equal: always.
    """
    return locally(spec, lambda e, node: _joined(node))


def split_logarithm(spec: Spec) -> list[Spec]:
    """before: log(a * b), log(a / b), log(exp(a))
    after:  log(a) + log(b), log(a) - log(b), a

    When equal: a and b are provably positive, such as exponentials and sums of them; the third
    always.
    """
    return locally(spec, lambda e, node: _split(spec, node))


def _joined(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("mul", (Apply("exp", (a,)), Apply("exp", (b,)))):
            yield Apply("exp", (Apply("add", (a, b)),))
        case Apply("div", (Apply("exp", (a,)), Apply("exp", (b,)))):
            yield Apply("exp", (Apply("sub", (a, b)),))
        case Apply("div", (Number(one), Apply("exp", (a,)))) if one == 1:
            yield Apply("exp", (Apply("neg", (a,)),))
        case Apply("pow", (Apply("exp", (a,)), Number() as n)):
            yield Apply("exp", (Apply("mul", (n, a)),))


def _split(spec: Spec, node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("log", (Apply("exp", (a,)),)):
            yield a
        case Apply("log", (Apply("mul" | "div" as function, (a, b)),)):
            if positive(spec, a) and positive(spec, b):
                sides = (Apply("log", (a,)), Apply("log", (b,)))
                yield Apply("add" if function == "mul" else "sub", sides)
