"""Moves the normalisation of exponential weights after the contraction that they weigh.

before: l[m] = sum(exp(s[m, n] - t[m]), n), w[m, n] = bf16(exp(s[m, n] - t[m]) / l[m])
        o[m, e] = sum(f32(w[m, n]) * f32(v[n, e]), n)
after:  p[m, n] = exp(s[m, n] - t[m]), l[m] = sum(p[m, n], n)
        u[m, e] = sum(p[m, n] * f32(v[n, e]), n), o[m, e] = u[m, e] / l[m]

One loop can then compute the maximum and both sums. The weights keep their precision until they are
summed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ir.partition.chains import Chain, chains, reads_in
from ir.partition.views import fresh
from ir.spec import Apply, Cast, Equation, Expr, Index, Read, Reduce, Spec
from ir.verify import facts
from ir.visit import pruned, rebuilt, renamed


def with_plain_weights(spec: Spec, aliases: Collection[str]) -> Spec:
    """Moves the division of each chain of a spec after its second contraction."""
    for chain in tuple(chains(spec, aliases)):
        spec = _divided_later(spec, chain) or spec
    return spec


def _divided_later(spec: Spec, chain: Chain) -> Spec | None:
    """The spec with one chain's division moved; None if its weights are not normalised in this
    way."""
    equations = {e.target: e for e in spec.equations}
    weights, last = equations[chain.weights], equations[chain.last]
    while isinstance(weights.value, Cast) and isinstance(weights.value.value, Read):
        weights = replace(weights, value=_inlined(weights.value.value, equations))
    value = weights.value.value if isinstance(weights.value, Cast) else weights.value
    reads = reads_in(last.value, chain.weights)
    if not isinstance(value, Apply) or value.function != "div" or len(reads) != 1:
        return None
    power, divisor = value.args
    total = equations.get(divisor.tensor) if isinstance(divisor, Read) else None
    if total is None or not isinstance(divisor, Read) or not isinstance(total.value, Reduce):
        return None
    (read,) = reads
    body = _body(total, divisor, weights)
    known = facts(spec).tensors
    if (
        body != power
        or total.target not in chain.members
        or not _kept(last, read, weights, divisor)
    ):
        return None
    dtype = known[total.target].dtype
    taken = {*known}
    powers, raw = fresh("powers", taken), fresh(f"{last.target}_raw", taken)
    sizes = known[weights.target].shape
    row = known[last.target].shape
    made: list[Equation] = []
    for e in spec.equations:
        if e.target == total.target:
            made.append(replace(weights, target=powers, value=power, sizes=sizes))
            inner = renamed(
                Read(powers, weights.at),
                {i: Index(to) for i, to in _names(weights, divisor, total).items()},
            )
            e = replace(e, value=replace(total.value, body=inner))
        elif e.target == last.target:
            made.append(
                replace(e, target=raw, value=_taken(e.value, read, powers, dtype), sizes=row)
            )
            rows = dict(zip(weights.indices, read.at, strict=True))
            e = replace(e, value=Apply("div", (Read(raw, e.at), renamed(divisor, rows))), sizes=row)
        made.append(e)
    return pruned(replace(spec, equations=tuple(made)))


def _inlined(read: Read, equations: dict[str, Equation]) -> Expr:
    e = equations[read.tensor]
    return renamed(e.value, dict(zip(e.indices, read.at, strict=True)))


def _names(weights: Equation, divisor: Read, total: Equation) -> dict[str, str]:
    """By index of the weights: the index of their sum that has the same values."""
    found = {
        p.name: i for p, i in zip(divisor.at, total.indices, strict=True) if isinstance(p, Index)
    }
    left = [i for i in weights.indices if i not in found]
    if len(left) == 1 and len(total.reduced) == 1:
        found[left[0]] = total.reduced[0]
    return found


def _body(total: Equation, divisor: Read, weights: Equation) -> Expr | None:
    """The body of a total at the indices of the weights; None if they do not match."""
    names = _names(weights, divisor, total)
    if len(names) != len(weights.indices) or not isinstance(total.value, Reduce):
        return None
    return renamed(total.value.body, {i: Index(w) for w, i in names.items()})


def _kept(last: Equation, read: Read, weights: Equation, divisor: Read) -> bool:
    """Whether a divisor is the same for all terms of the second contraction."""
    at = dict(zip(weights.indices, read.at, strict=True))
    rows = [at[p.name] for p in divisor.at if isinstance(p, Index)]
    return all(isinstance(p, Index) and p.name in last.indices for p in rows)


def _taken(expr: Expr, read: Read, tensor: str, dtype: str) -> Expr:
    """Replaces a read by one of another tensor, of the given dtype, and drops a cast to that
    dtype."""
    if isinstance(expr, Cast) and expr.value == read:
        made = replace(read, tensor=tensor)
        return made if expr.dtype == dtype else replace(expr, value=made)
    if expr == read:
        return replace(read, tensor=tensor)
    return rebuilt(expr, lambda part: _taken(part, read, tensor, dtype))
