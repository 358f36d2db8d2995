"""Strength reduction: cheaper functions, or functions that another unit computes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ir.contraction import indices
from ir.recurrence import recurrences
from ir.rewrites.equations import fresh, kept, locally, real, replaced, substituted
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Scan, Spec

MOST_FACTORS = 4  # of a power that is written as a product


def multiply_reciprocal(spec: Spec) -> list[Spec]:
    """before: y[m, k] = x[m, k] / c[m]
    after:  r[m] = 1.0 / c[m]; y[m, k] = x[m, k] * r[m]

    When equal: always. c lacks an index of the dividend. A power of two is multiplied too: x / 4
    becomes x * 0.25.
    """
    found = list(locally(spec, lambda e, node: _by_power_of_two(node)))
    carried = {t for r in recurrences(spec) for t in r.targets}
    for e in spec.equations:
        every = {*e.indices, *_along(e)}
        below = (
            n.args[1] for n in real(spec, e.value) if isinstance(n, Apply) and n.function == "div"
        )
        for c in dict.fromkeys(below) if e.target not in carried and _even(e) else ():
            inside = indices(c)
            if inside and set(inside) < every:
                at = tuple(map(Index, inside))
                one = Apply("div", (Number(1.0), c))
                made = Equation(fresh(spec, f"{e.target}_reciprocal"), at, one)
                new: dict[Expr, Expr] = {
                    n: Apply("mul", (n.args[0], Read(made.target, at)))
                    for n in real(spec, e.value)
                    if isinstance(n, Apply) and n.function == "div" and n.args[1] == c
                }
                value = substituted(e.value, new)
                whole = Equation(e.target, e.at, value, e.accumulate, e.place, sizes=e.sizes)
                found.append(replaced(spec, {e.target: (made, whole)}))
    return kept(spec, found)


def reduce_power(spec: Spec) -> list[Spec]:
    """before: x ** 2, x ** 3, x ** 0.5, x ** -0.5, x ** -1, 1.0 / sqrt(x)
    after:  x * x, x * x * x, sqrt(x), rsqrt(x), 1.0 / x, rsqrt(x)

    When equal: always.
    """
    return locally(spec, lambda e, node: _reduced(node))


def in_powers_of_two(spec: Spec) -> list[Spec]:
    """before: exp(x), log(x)
    after:  exp2(x * 1.4426950408889634), log2(x) * 0.6931471805599453

    When equal: up to the rounding of the constant.
    """
    return locally(spec, lambda e, node: _in_twos(node))


def name_activation(spec: Spec) -> list[Spec]:
    """before: 1.0 / (1.0 + exp(-x)), x * sigmoid(x), x / (1.0 + exp(-x)), maximum(x, 0.0)
    after:  sigmoid(x), silu(x), silu(x), relu(x)

    When equal: always.
    """
    return locally(spec, lambda e, node: _named(node))


def expand_activation(spec: Spec) -> list[Spec]:
    """before: sigmoid(x), silu(x)
    after:  1.0 / (1.0 + exp(-x)), x * sigmoid(x)

    When equal: always. After it, name_common can share the exponential.
    """
    return locally(spec, lambda e, node: _written(node))


def _along(e: Equation) -> tuple[str, ...]:
    return (e.value.along,) if isinstance(e.value, Scan) else e.reduced


def _even(e: Equation) -> bool:
    return not isinstance(e.value, Reduce) or not any(r.jagged for r in e.value.ranges)


def _by_power_of_two(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("div", (x, Number(value))) if value and not isinstance(x, Number):
            if math.frexp(abs(value))[0] == 0.5 and math.isfinite(1 / value):
                yield Apply("mul", (x, Number(1 / value)))


def _reduced(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("pow", (x, Number(n))) if n in range(2, MOST_FACTORS + 1):
            made = x
            for _ in range(int(n) - 1):
                made = Apply("mul", (made, x))
            yield made
        case Apply("pow", (x, Number(n))) if n in (0.5, -0.5):
            yield Apply("sqrt" if n > 0 else "rsqrt", (x,))
        case Apply("pow", (x, Number(n))) if n == -1:
            yield Apply("div", (Number(1.0), x))
        case Apply("square", (x,)):
            yield Apply("mul", (x, x))
        case Apply("div", (Number(n), Apply("sqrt", (x,)))) if n == 1:
            yield Apply("rsqrt", (x,))


def _in_twos(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("exp", (x,)):
            yield Apply("exp2", (Apply("mul", (x, Number(math.log2(math.e)))),))
        case Apply("log", (x,)):
            yield Apply("mul", (Apply("log2", (x,)), Number(math.log(2))))


def _named(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("div", (above, below)) if (x := _logistic(below)) is not None:
            if isinstance(above, Number) and above.value == 1:
                yield Apply("sigmoid", (x,))
            elif above == x:
                yield Apply("silu", (x,))
        case Apply("mul", (x, Apply("sigmoid", (z,)))) | Apply("mul", (Apply("sigmoid", (z,)), x)):
            if x == z:
                yield Apply("silu", (x,))
        case Apply("maximum", (x, Number(n))) | Apply("maximum", (Number(n), x)) if n == 0:
            yield Apply("relu", (x,))


def _logistic(expr: Expr) -> Expr | None:
    """x in 1 + exp(-x); None for other expressions."""
    match expr:
        case Apply("add", (Number(one), Apply("exp", (Apply("neg", (x,)),)))) | Apply(
            "add", (Apply("exp", (Apply("neg", (x,)),)), Number(one))
        ) if one == 1:
            return x
    return None


def _written(node: Expr) -> Iterable[Expr]:
    match node:
        case Apply("sigmoid", (x,)):
            below = Apply("add", (Number(1.0), Apply("exp", (Apply("neg", (x,)),))))
            yield Apply("div", (Number(1.0), below))
        case Apply("silu", (x,)):
            yield Apply("mul", (x, Apply("sigmoid", (x,))))
