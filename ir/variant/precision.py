"""Operand precision: 3xTF32 contractions, and the dtypes of matrix-unit operands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from ir.contraction import Contraction, contraction, factors, indices, product
from ir.errors import KernelError
from ir.machine import Machine
from ir.memo import kept
from ir.schedule import Decision, Schedule
from ir.spec import (
    EIGHT,
    SCALE,
    SMALL,
    Apply,
    Cast,
    Equation,
    Expr,
    Index,
    Read,
    Reduce,
    Spec,
    Tensor,
)
from ir.variant.derived import require_free
from ir.verify import facts

NARROW = "tf32"
EXACT = (*SMALL, "bf16", "f16", "tf32")  # dtypes whose every value tf32 holds


def triple(spec: Spec, decision: Decision, target: str) -> Spec:
    """Splits a contraction into three tf32 contractions (3xTF32 split precision).

    before: acc[m, n] = sum(a[m, k] * b[k, n], k)
    after:  acc_ah[m, k] = tf32(a[m, k]); acc_al[m, k] = tf32(a[m, k] - f32(acc_ah[m, k]));
            acc_bh[n, k] and acc_bl[n, k] likewise;
            acc[m, n] = sum(acc_al * acc_bh + acc_ah * acc_bl + acc_ah * acc_bh, k)

    Their sum, small terms first, is about as accurate as an f32 contraction. An operand that tf32
    holds exactly is not split; then two contractions suffice. The parts are recomputed where they
    are read, or stored once by `kernel(acc_al)` and `kernel(acc_bl)`.
    """
    name = decision.subject
    equation = spec.equation(target)
    found = contraction(equation)
    if found is None:
        raise KernelError(
            f"`{name}` is no sum of products, so it has no operands to split",
            place=decision.place,
        )
    _require_even(equation, decision)
    sides = (
        _Side.of(spec, f"{name}_a", found.a, (*found.batch, *found.rows, *found.over)),
        _Side.of(spec, f"{name}_b", found.b, (*found.batch, *found.columns, *found.over)),
    )
    # Operands with fewer indices first: their parts, such as a convolution's filter, can be stored
    # by launches of their own.
    first = sorted(sides, key=lambda side: max((len(e.at) for e in side.equations), default=0))
    made = tuple(e for side in first for e in side.equations)
    if not made:
        raise KernelError(
            f"the operands of `{name}` are of 16 or 8 bits, which tf32 holds exactly",
            place=decision.place,
            hint=f"drop precision({name}, ...)",
        )
    require_free(spec, tuple(e.target for e in made), decision)
    body, *more = _pairs(*sides)
    for pair in more:
        body = Apply("add", (body, pair))
    whole = replace(equation, value=replace(equation.reduce, body=body))
    at = spec.equations.index(equation)
    lines = (*spec.equations[:at], *made, whole, *spec.equations[at + 1 :])
    return replace(spec, equations=lines)


def widened(spec: Spec, target: str) -> Spec:
    """The spec with an f16 sum as an f32 one.

    The user's equations do not have this sum, and f16 may not hold its values.
    """
    if facts(spec).tensors[target].dtype != "f16":
        return spec
    e = spec.equation(target)
    body = product(tuple(Cast("f32", f) for f in factors(e.reduce.body)))
    wide = replace(e, value=replace(e.reduce, body=body))
    return replace(spec, equations=tuple(wide if o is e else o for o in spec.equations))


def undone(spec: Spec, equation: Equation) -> Equation:
    """Restores the single product of an equation that `triple` rewrote; other equations are
    unchanged."""
    parts = terms(equation)
    last = parts[-1] if len(parts) > 1 else None
    if not isinstance(last, Apply) or last.function != "mul":
        return equation
    made = {e.target: e for e in spec.equations}
    a, b = (_Side.found(made, factor) for factor in last.args)
    if _pairs(a, b) != parts:
        return equation
    body = Apply("mul", tuple(_whole(made, s) for s in (a, b)))
    return replace(equation, value=replace(equation.reduce, body=body))


def terms(equation: Equation) -> tuple[Expr, ...]:
    """The terms that a sum's body adds: one if the body is no addition, none for other
    reductions."""

    def visit(expr: Expr) -> tuple[Expr, ...]:
        if isinstance(expr, Apply) and expr.function == "add":
            return tuple(t for a in expr.args for t in visit(a))
        return (expr,)

    value = equation.value
    if not isinstance(value, Reduce) or value.reduction != "sum":
        return ()
    return visit(value.body)


@kept
def products(equation: Equation) -> tuple[Contraction, ...]:
    """The contractions that a sum consists of: one, or those of `triple`; none if a term is no
    contraction."""
    if whole := contraction(equation):
        return (whole,)
    parts = terms(equation)
    alone = (replace(equation, value=replace(equation.reduce, body=t)) for t in parts)
    found = tuple(c for one in alone if (c := contraction(one)))
    return found if len(found) == len(parts) else ()


def natural(expr: Expr, tensors: Mapping[str, Tensor], computed: Collection[str]) -> str:
    """The narrowest dtype known to hold every value of a factor exactly.

    computed: tensors that this launch computes. They are held in f32 whatever their dtype, except
        tf32.
    """
    inner = expr.value if isinstance(expr, Cast) and expr.dtype == "f32" else expr
    if isinstance(inner, Read):
        dtype = tensors[inner.tensor].dtype
        if inner.tensor not in computed or dtype == NARROW:
            return "bf16" if dtype == SCALE else dtype  # of scales alone there are no matmuls
    return "f32"


def together(a: str, b: str) -> str:
    """The dtype in which two operands of different dtypes are multiplied: it holds all values of
    both.

    An 8-bit operand takes the other's dtype; two different 8-bit formats are converted to bf16.
    """
    if a == b:
        return a
    if {a, b} == set(EIGHT):
        return "bf16"
    wide = [d for d in (a, b) if d not in EIGHT]
    return wide[0] if len(wide) == 1 else "f32"


def narrowest(spec: Spec) -> tuple[str, ...]:
    """The 16-bit dtypes to which operands may be rounded because an input has them.

    8-bit inputs count as bf16, which holds all their values.
    """
    have = {"bf16" if t.dtype in SMALL else t.dtype for t in spec.inputs}
    return tuple(sorted(have & {"f16", "bf16"}))


def decided(schedule: Schedule, target: str) -> str:
    """The operand precision that a schedule gives a sum; empty if it gives none."""
    decision = schedule.find("precision", target)
    return str(decision.option("dtype")) if decision else ""


def require_narrow(spec: Spec, machine: Machine) -> None:
    """Raises KernelError if a spec casts to tf32 and the machine's matrix unit does not take
    tf32."""
    for e in spec.equations:
        for node in e.value.walk():
            if isinstance(node, Cast) and node.dtype == NARROW and not machine.has_matrix(NARROW):
                raise KernelError(
                    f"`{e.target}` casts to {NARROW}, which `{machine.name}` does not have",
                    place=node.place or e.place,
                    hint="drop the cast",
                )


class _Side:
    """One operand as the sum of two tf32 parts."""

    def __init__(self, high: Expr, low: Expr | None, equations: tuple[Equation, ...]):
        # the operand rounded to tf32, or the operand itself if tf32 holds it exactly
        self.high = high
        self.low = low  # the rounded remainder; None if the operand is exact
        self.equations = equations  # they define the parts

    @staticmethod
    def of(spec: Spec, name: str, expr: Expr, order: tuple[str, ...]) -> _Side:
        """Splits the operand `expr` into the tensors `<name>h` and `<name>l`, unless tf32 holds it
        exactly.

        order: of the indices of these tensors.
        """
        computed = {e.target: e for e in spec.equations}
        if natural(expr, facts(spec).tensors, computed) in EXACT:
            return _Side(expr, None, ())
        at = tuple(Index(i) for i in order if i in indices(expr))
        high, low = Read(f"{name}h", at), Read(f"{name}l", at)
        rest = Apply("sub", (expr, Cast("f32", high)))
        made = (
            Equation(high.tensor, at, Cast(NARROW, expr)),
            Equation(low.tensor, at, Cast(NARROW, rest)),
        )
        return _Side(high, low, made)

    @staticmethod
    def found(made: Mapping[str, Equation], high: Expr) -> _Side:
        """The operand whose high part a factor is; the factor alone if it is no high part."""
        if isinstance(high, Read) and high.tensor in made:
            low = replace(high, tensor=f"{high.tensor.removesuffix('h')}l")
            whole = made[high.tensor].value
            if isinstance(whole, Cast) and low.tensor in made:
                rest = Cast(NARROW, Apply("sub", (whole.value, Cast("f32", high))))
                if made[low.tensor].value == rest and made[high.tensor].at == high.at:
                    return _Side(high, low, ())
        return _Side(high, None, ())


def _pairs(a: _Side, b: _Side) -> tuple[Expr, ...]:
    """The products of two split operands, small ones first; low * low is too small to matter."""
    # Small terms first: added to a large sum one by one they would lose bits.
    pairs = ((a.low, b.high), (a.high, b.low), (a.high, b.high))
    return tuple(Apply("mul", (x, y)) for x, y in pairs if x is not None and y is not None)


def _whole(made: Mapping[str, Equation], side: _Side) -> Expr:
    """The operand before it was split."""
    if side.low is None:
        return side.high
    return cast(Cast, made[cast(Read, side.high).tensor].value).value


def _require_even(equation: Equation, decision: Decision) -> None:
    if any(r.jagged for r in equation.reduce.ranges):
        raise KernelError(
            f"`{decision.subject}` runs over a jagged range, whose operands have no shape to split",
            place=decision.place,
            hint=f"precision({decision.subject}, dtype={NARROW})",
        )
