"""Layout: the order of a tensor's dimensions in memory, by a copy or as it is computed."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from ir.contraction import indices
from ir.errors import KernelError
from ir.made import copy_of, needed, require_free
from ir.schedule import Decision
from ir.spec import Equation, Expr, Index, Read, Spec
from ir.verify import facts
from ir.visit import rebuilt, visited


def layout(spec: Spec, decision: Decision) -> Spec:
    """before: y[m, n] = sum(x[m, k] * w[k, n], k)
    after:  w_nk[n, k] = w[k, n] (along indices of its own), in a launch of its own; y[m, n] = sum(x[m, k] * w_nk[n, k], k)

    A tensor that the kernel computes, `t[k, n] = ...`, becomes `t[n, k] = ...` instead. The
    dimensions of an input are named by the index that each is read at, see `dimensions`.
    Legal for all but outputs.
    """
    name = decision.subject
    order = str(needed(decision, "order"))
    known = facts(spec).tensors
    if name not in known or name in {t.name for t in spec.outputs}:
        what = "is an output" if name in known else "is no tensor"
        raise KernelError(
            f"`{name}` {what}, so its layout is not decided", place=decision.place,
            allowed=", ".join(n for n in known if n not in {t.name for t in spec.outputs}),
        )  # fmt: skip
    names = dimensions(spec, name)
    turns = permutations(range(len(names)))
    turn = next((t for t in turns if "_".join(names[d] for d in t) == order), None)
    if turn is None or turn == tuple(sorted(turn)) or _fixed(spec, name):
        raise KernelError(
            f"`order={order}` is no other order of `{name}`, whose dimensions "
            f"are {', '.join(names) or 'none'}",
            place=decision.place,
            hint="name each dimension once, the one that lies contiguous last: order=n_k",
        )
    if name in {t.name for t in spec.inputs}:
        return _copied(spec, decision, names, turn)
    return visited(spec, lambda e: _turned(e, name, name, turn), {name: turn})


def dimensions(spec: Spec, name: str) -> tuple[str, ...]:
    """A name for each dimension of a tensor: its index where it is computed, else the first
    index of the position it is read at; `d0`, `d1` where that is none or names another too."""
    made = {e.target: e for e in spec.equations}
    if name in made:
        return made[name].indices
    reads = [r for e in spec.equations for r in e.reads() if r.tensor == name]
    names: list[str] = []
    for dim in range(len(facts(spec).tensors[name].shape)):
        at = [r.at[dim] for r in reads]
        plain = [p.name for p in at if isinstance(p, Index)]
        others = [i for p in at for i in indices(p)]
        found = next((i for i in (*plain, *others) if i not in names), f"d{dim}")
        names.append(found)
    return tuple(names)


def _fixed(spec: Spec, name: str) -> bool:
    """Whether a tensor is scattered into, so that its positions are no plain indices."""
    return any(e.target == name and e.accumulate for e in spec.equations)


def _copied(
    spec: Spec, decision: Decision, names: tuple[str, ...], turn: tuple[int, ...]
) -> Spec:
    name, copy = decision.subject, copy_of(decision)
    at = tuple(Index(f"{copy}_{index}") for index in names)
    require_free(spec, (copy, *(i.name for i in at)), decision)
    made = Equation(copy, tuple(at[d] for d in turn), Read(name, at))
    spec = visited(spec, lambda e: _turned(e, name, copy, turn), {})
    return replace(spec, equations=(made, *spec.equations))


def _turned(expr: Expr, name: str, to: str, turn: tuple[int, ...]) -> Expr:
    """The expression with reads of a tensor at positions in the new order."""
    expr = rebuilt(expr, lambda e: _turned(e, name, to, turn))
    if isinstance(expr, Read) and expr.tensor == name:
        return replace(expr, tensor=to, at=tuple(expr.at[d] for d in turn))
    return expr
