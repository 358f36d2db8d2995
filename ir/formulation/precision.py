"""Precision: a product of f32 operands as products of tf32 ones, and what that leaves exact."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ir.contraction import Contraction, contraction, factors, indices, product
from ir.errors import KernelError
from ir.formulation.made import require_free
from ir.machine import Machine
from ir.schedule import Decision, Schedule
from ir.spec import EIGHT, Apply, Cast, Equation, Expr, Index, Read, Reduce, Spec, Tensor
from ir.verify import facts

NARROW = "tf32"
EXACT = (*EIGHT, "bf16", "f16", "tf32")  # every value of these is one of tf32


def triple(spec: Spec, decision: Decision, target: str) -> Spec:
    """before: acc[m, n] = sum(a[m, k] * b[k, n], k)
    after:  acc_ah[m, k] = tf32(a[m, k]); acc_al[m, k] = tf32(a[m, k] - f32(acc_ah[m, k]));
            acc_bh[n, k] and acc_bl[n, k] likewise;
            acc[m, n] = sum(acc_al * acc_bh + acc_ah * acc_bl + acc_ah * acc_bh, k)

    Three products of tf32 operands, the small ones first: about the result of an f32 product.
    A side that tf32 holds exactly stays as it is, and takes two products. Recomputed where they
    are read, or stored once by `kernel(acc_al)`, `kernel(acc_bl)`.
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
    made = tuple(e for side in sides for e in side.equations)
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
    whole = replace(equation, value=replace(equation.value, body=body))
    at = spec.equations.index(equation)
    lines = (*spec.equations[:at], *made, whole, *spec.equations[at + 1 :])
    return replace(spec, equations=lines)


def widened(spec: Spec, target: str) -> Spec:
    """The spec with a sum of f16 as one of f32: for one that the given equations do not have, whose
    values f16 may not hold."""
    if facts(spec).tensors[target].dtype != "f16":
        return spec
    e = spec.equation(target)
    body = product(tuple(Cast("f32", f) for f in factors(e.value.body)))
    wide = replace(e, value=replace(e.value, body=body))
    return replace(spec, equations=tuple(wide if o is e else o for o in spec.equations))


def undone(spec: Spec, equation: Equation) -> Equation:
    """An equation that `triple` made three products of, with the one product again."""
    parts = terms(equation)
    last = parts[-1] if len(parts) > 1 else None
    if not isinstance(last, Apply) or last.function != "mul":
        return equation
    made = {e.target: e for e in spec.equations}
    a, b = (_Side.found(made, factor) for factor in last.args)
    if _pairs(a, b) != parts:
        return equation
    body = Apply("mul", tuple(_whole(made, s) for s in (a, b)))
    return replace(equation, value=replace(equation.value, body=body))


def terms(equation: Equation) -> tuple[Expr, ...]:
    """The products that a sum's body adds up, where it is a sum of several."""

    def visit(expr: Expr) -> tuple[Expr, ...]:
        if isinstance(expr, Apply) and expr.function == "add":
            return tuple(t for a in expr.args for t in visit(a))
        return (expr,)

    value = equation.value
    if not isinstance(value, Reduce) or value.fold != "sum":
        return ()
    return visit(value.body)


def products(equation: Equation) -> tuple[Contraction, ...]:
    """The contractions that a sum consists of: one, or those that `triple` made; none if any of
    its terms is no contraction."""
    if whole := contraction(equation):
        return (whole,)
    value = equation.value
    found = [contraction(replace(equation, value=replace(value, body=t))) for t in terms(equation)]
    return tuple(found) if found and all(found) else ()


def natural(expr: Expr, tensors: Mapping[str, Tensor], computed: Collection[str]) -> str:
    """The narrowest dtype that holds every value of a factor exactly, as far as can be told.

    computed: the tensors that are computed where the factor is, in a dtype of their own.
    """
    inner = expr.value if isinstance(expr, Cast) and expr.dtype == "f32" else expr
    if isinstance(inner, Read):
        dtype = tensors[inner.tensor].dtype
        if inner.tensor not in computed or dtype == NARROW:
            return dtype
    return "f32"


def together(a: str, b: str) -> str:
    """The dtype of a product's operands of two dtypes: one that holds all values of both.

    An operand of 8 bits is taken as the other's, or as bf16 where that is the other one of 8 bits.
    """
    if a == b:
        return a
    if {a, b} == set(EIGHT):
        return "bf16"
    wide = [d for d in (a, b) if d not in EIGHT]
    return wide[0] if len(wide) == 1 else "f32"


def narrowest(spec: Spec) -> tuple[str, ...]:
    """The dtypes to which operands of products may be rounded, as an input has one of them: those
    of 16 bits; with inputs of 8 bits also bf16, which holds all of their values."""
    have = {"bf16" if t.dtype in EIGHT else t.dtype for t in spec.inputs}
    return tuple(sorted(have & {"f16", "bf16"}))


def decided(schedule: Schedule, target: str) -> str:
    """The precision of a sum's operands that a schedule gives, empty where it gives none."""
    decision = schedule.find("precision", target)
    return str(decision.option("dtype")) if decision else ""


def require_narrow(spec: Spec, machine: Machine) -> None:
    """Raises KernelError where a spec casts to tf32 and a machine has no unit that takes it."""
    for e in spec.equations:
        for node in e.value.walk():
            if isinstance(node, Cast) and node.dtype == NARROW and not machine.has_matrix(NARROW):
                raise KernelError(
                    f"`{e.target}` casts to {NARROW}, which `{machine.name}` does not have",
                    place=node.place or e.place,
                    hint="drop the cast",
                )


class _Side:
    """One operand: `high` alone where tf32 holds it, else `high` and `low` with equations."""

    def __init__(self, high: Expr, low: Expr | None, equations: tuple[Equation, ...]):
        self.high, self.low, self.equations = high, low, equations

    @staticmethod
    def of(spec: Spec, name: str, expr: Expr, order: tuple[str, ...]) -> _Side:
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
        """The side that a factor is the high part of; the factor alone where it is of none."""
        if isinstance(high, Read) and high.tensor in made:
            low = replace(high, tensor=f"{high.tensor.removesuffix('h')}l")
            whole = made[high.tensor].value
            if isinstance(whole, Cast) and low.tensor in made:
                rest = Cast(NARROW, Apply("sub", (whole.value, Cast("f32", high))))
                if made[low.tensor].value == rest and made[high.tensor].at == high.at:
                    return _Side(high, low, ())
        return _Side(high, None, ())


def _pairs(a: _Side, b: _Side) -> tuple[Expr, ...]:
    """The products of two operands, small ones first."""
    pairs = ((a.low, b.high), (a.high, b.low), (a.high, b.high))
    return tuple(Apply("mul", pair) for pair in pairs if None not in pair)


def _whole(made: Mapping[str, Equation], side: _Side) -> Expr:
    """What an operand was before it was split."""
    return made[side.high.tensor].value.value if side.low else side.high


def _require_even(equation: Equation, decision: Decision) -> None:
    if any(r.jagged for r in equation.value.ranges):
        raise KernelError(
            f"`{decision.subject}` runs over a jagged range, whose operands have no shape to split",
            place=decision.place,
            hint=f"precision({decision.subject}, dtype={NARROW})",
        )
