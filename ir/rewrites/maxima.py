"""Maxima of exponents: subtracts them, or drops them where no exponential overflows.

The verb `online` computes the maximum together with the sums that need it. It applies to the result
of subtract_maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ir.contraction import indices
from ir.recurrence import recurrences
from ir.rewrites.equations import floating, fresh, kept, replaced, substituted
from ir.rewrites.scaling import unscaled
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Spec
from ir.variant.bounds import interval
from ir.verify import facts

LARGEST = 40.0  # largest exponent whose exponentials f32 can still sum, many of them


def subtract_maximum(spec: Spec) -> list[Spec]:
    """before: e[m, k] = exp(x[m, k]); s[m] = sum(e[m, k], k); y[m, k] = e[m, k] / s[m]
    after:  mx[m] = max(x[m, k], k); e[m, k] = exp(x[m, k] - mx[m]); s and y as before

    When equal: no output changes when all these exponentials are scaled by one factor.
    """
    found = []
    for e, body, over in _exponentials(spec):
        if not isinstance(body, Apply) or body.function != "sub":
            found += _shifted(spec, e, body, over)
    return kept(spec, found)


def drop_maximum(spec: Spec) -> list[Spec]:
    """before: mx[m] = max(x[m, k], k); e[m, k] = exp(x[m, k] - mx[m]); s[m] = sum(e[m, k], k);
            y[m, k] = e[m, k] / s[m]
    after:  e[m, k] = exp(x[m, k]); s and y as before

    When equal: no output changes when all these exponentials are scaled by one factor. Applies only
    where x is provably between -40 and 40, as 30 * tanh(z) is.
    """
    if recurrences(spec):
        return []
    found: list[Spec] = []
    tensors = facts(spec).tensors
    for top in spec.equations:
        if not isinstance(top.value, Reduce) or top.value.reduction != "max":
            continue
        low, high = interval(spec, _unmasked(top.value.body))
        if -LARGEST <= low and high <= LARGEST and tensors[top.target].dtype in ("f32", "f64"):
            sites: dict[Expr, Expr] = {}
            scales: dict[Expr, dict[tuple[Expr, ...], int]] = {}
            for node in (n for e in spec.equations for n in e.value.walk()):
                if less := _less(node, top.target):
                    sites[node] = Apply("exp", (less[0],))
                    scales[node] = {less[1].at: 1}
            found += _changed(spec, sites, scales, top.target)
    return kept(spec, found)


def _exponentials(spec: Spec) -> Iterator[tuple[Equation, Expr, tuple[str, ...]]]:
    """Each exponent, with the first equation that has it and the indices that a sum reduces."""
    if recurrences(spec):
        return
    over = dict.fromkeys(
        e.value.over
        for e in spec.equations
        if isinstance(e.value, Reduce) and e.value.reduction == "sum" and not e.value.ranges
    )
    seen = set()
    for e in spec.equations:
        for node in e.value.walk():
            if isinstance(node, Apply) and node.function == "exp" and node not in seen:
                seen.add(node)
                for names in over if floating(spec, node) else ():
                    if set(names) <= set(indices(node)):
                        yield e, node.args[0], names


def _shifted(spec: Spec, e: Equation, body: Expr, over: tuple[str, ...]) -> list[Spec]:
    """The spec with the maximum of an exponent subtracted; none where that changes an output."""
    at = tuple(Index(i) for i in indices(body) if i not in over)
    top = Equation(fresh(spec, f"{e.target}_max"), at, Reduce("max", body, over))
    site = Apply("exp", (body,))
    read = Read(top.target, at)
    made = _changed(spec, {site: Apply("exp", (Apply("sub", (body, read)),))}, {site: {at: 1}}, "")
    return [replace(s, equations=_with_before(s, e.target, top)) for s in made]


def _with_before(spec: Spec, target: str, top: Equation) -> tuple[Equation, ...]:
    return replaced(spec, {target: (top, spec.equation(target))}).equations


def _changed(
    spec: Spec,
    sites: Mapping[Expr, Expr],
    scales: Mapping[Expr, Mapping[tuple[Expr, ...], int]],
    gone: str,
) -> list[Spec]:
    """The spec with the expressions of `sites` replaced. None where something else reads the tensor
    `gone`, or where scaling these expressions changes an output."""
    if not sites or not unscaled(spec, scales):
        return []
    lines = tuple(replace(e, value=substituted(e.value, sites)) for e in spec.equations)
    made = replace(spec, equations=lines)
    return [] if gone and any(gone in e.sources() for e in lines) else [made]


def _less(node: Expr, tensor: str) -> tuple[Expr, Read] | None:
    """f and the read in a node exp(f - tensor[...]); None for other nodes."""
    match node:
        case Apply("exp", (Apply("sub", (f, Read() as top)),)) if top.tensor == tensor:
            if all(n.tensor != tensor for n in f.walk() if isinstance(n, Read)):
                return f, top
    return None


def _unmasked(expr: Expr) -> Expr:
    """The unmasked values: the exponential of a masked one is 0."""
    match expr:
        case Apply("where", (_, value, Number(end))) if end == -float("inf"):
            return value
        case Apply("where", (_, Number(end), value)) if end == -float("inf"):
            return value
    return expr
