"""Replacing equations of a spec: fresh names, places to rewrite, and checks of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ir.contraction import indices
from ir.dtypes import Dtypes, is_float
from ir.errors import KernelError
from ir.spec import (
    Apply,
    Bucketize,
    Equation,
    Expr,
    Index,
    Number,
    Range,
    Read,
    Reduce,
    Scan,
    Spec,
)
from ir.verify import facts
from ir.visit import pruned, rebuilt

NodeChange = Callable[[Equation, Expr], Iterable[Expr]]


def kept(spec: Spec, found: Iterable[Spec]) -> list[Spec]:
    """The candidates that are valid specs and differ from `spec`, without unused equations.

    Indices keep their ranges and tensors their dtypes.
    """
    known = facts(spec)
    made: dict[Spec, None] = {}
    for candidate in found:
        candidate = _as_parsed(pruned(candidate))
        try:
            now = facts(candidate)
        except KernelError:  # e.g. nothing is left that gives an index its range
            continue
        same = all(known.ranges.get(i, r) == r for i, r in now.ranges.items())
        alike = all(
            known.tensors[t].dtype == now.tensors[t].dtype
            for t in known.tensors.keys() & now.tensors.keys()
        )
        if candidate != spec and same and alike:
            made[candidate] = None
    return list(made)


def locally(spec: Spec, change: NodeChange) -> list[Spec]:
    """The specs in which one float expression is replaced by a result of `change`.

    It is replaced at all its places in one equation.
    """
    found = []
    for e in spec.equations:
        for node in dict.fromkeys(real(spec, e.value)):
            for new in change(e, node):
                value = substituted(e.value, {node: new})
                found.append(replaced(spec, {e.target: (replace(e, value=value),)}))
    return kept(spec, found)


def real(spec: Spec, expr: Expr) -> list[Expr]:
    """The nodes of an expression with float values.

    Reductions and scans themselves are left out, and nodes in positions or bounds.
    """
    dtypes = _dtypes(spec)
    found: list[Expr] = []
    todo = [expr]
    while todo:
        node = todo.pop()
        if isinstance(node, Reduce | Scan):
            todo.append(node.body)
            continue
        if is_float(dtypes.of(node)):
            found.append(node)
        if not isinstance(node, Read | Bucketize | Range):
            todo.extend(reversed(tuple(node.children())))
    return found


def floating(spec: Spec, expr: Expr) -> bool:
    """Whether an expression's value is a float."""
    return is_float(_dtypes(spec).of(expr))


def substituted(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    """The expression with some of its nodes replaced, the outermost first."""
    return new[expr] if expr in new else rebuilt(expr, lambda e: substituted(e, new))


def replaced(spec: Spec, new: Mapping[str, tuple[Equation, ...]]) -> Spec:
    """The spec with some equations replaced. new: the replacements, by target."""
    lines = (new.get(e.target, (e,)) for e in spec.equations)
    return replace(spec, equations=tuple(e for line in lines for e in line))


def fresh(spec: Spec, name: str) -> str:
    """The name, with a number appended if the spec uses it already."""
    nodes = (n for e in spec.equations for x in (*e.at, e.value) for n in x.walk())
    taken = {t.name for t in spec.inputs} | {e.target for e in spec.equations}
    taken |= {n.name for n in nodes if isinstance(n, Index)} | {a for a, _ in spec.attributes}
    taken |= {i for e in spec.equations for i in e.reduced}
    numbered = (f"{name}_{k}" for k in range(2, len(taken) + 3))
    return next(n for n in (name, *numbered) if n not in taken)


def reduced(name: str, body: Expr, like: Equation, reduction: str = "") -> Equation:
    """A reduction over the indices of `like`, with those indices of its left side that `body` has.

    reduction: a reduction other than that of `like`.
    """
    at = tuple(x for x in like.at if set(indices(x)) <= set(indices(body)))
    return Equation(
        name, at, replace(like.reduce, body=body, reduction=reduction or like.reduce.reduction)
    )


def readers(spec: Spec, tensor: str) -> list[Equation]:
    """The equations that need a tensor."""
    return [e for e in spec.equations if tensor in e.sources()]


def returned(spec: Spec) -> set[str]:
    """The names of the tensors that a spec returns."""
    return {t.name for t in spec.outputs}


def _as_parsed(spec: Spec) -> Spec:
    """The spec with negated numbers as negative numbers, as the parser reads them."""
    if not any(map(_negated, (n for e in spec.equations for n in e.value.walk()))):
        return spec
    lines = tuple(replace(e, value=_negative(e.value)) for e in spec.equations)
    return replace(spec, equations=lines)


def _negative(expr: Expr) -> Expr:
    made = rebuilt(expr, _negative)
    match made:
        case Apply("neg", (Number(value),)) if _negated(made):
            return Number(-value)
    return made


def _negated(expr: Expr) -> bool:
    match expr:
        case Apply("neg", (Number(value),)):
            return type(value) is not bool and not value < 0
    return False


def _dtypes(spec: Spec) -> Dtypes:
    known = {name: t.dtype for name, t in facts(spec).tensors.items()}
    return Dtypes(known, dict(spec.attributes))
