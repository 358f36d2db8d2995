"""Memory layouts: a packed copy of an input, or another dimension order of a computed tensor."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from ir.contraction import contraction, factors, indices, product
from ir.errors import KernelError
from ir.schedule import Decision
from ir.spec import Cast, Equation, Expr, Index, Read, Spec
from ir.variant.derived import copy_of, needed, require_free
from ir.verify import facts
from ir.visit import reordered, transposed


def pack(spec: Spec, decision: Decision) -> Spec:
    """Applies a `pack` decision.

    before: y[m, n] = sum(x[m, k] * w[k, n], k)
    after:  w_nk[n, k] = w[k, n], in a launch of its own; y[m, n] = sum(x[m, k] * w_nk[n, k], k)

    The copy has indices of its own (`w_nk_n`, `w_nk_k`). A tensor that the kernel computes,
    `t[k, n] = ...`, becomes `t[n, k] = ...` instead. The dimensions of an input are named after the
    indices at which it is read, see `dimensions`. Legal for all tensors but outputs.

    With `dtype=tf32` the copy is rounded, w_nk[n, k] = tf32(w[k, n]). Then only contractions read
    it, and it may keep the input's order. Legal for f32 inputs that are operands.
    """
    name = decision.subject
    order, dtype = str(needed(decision, "order")), decision.option("dtype")
    known = facts(spec).tensors
    if name not in known or name in {t.name for t in spec.outputs}:
        what = "is an output" if name in known else "is no tensor"
        raise KernelError(
            f"`{name}` {what}, so its layout is not decided",
            place=decision.place,
            allowed=", ".join(n for n in known if n not in {t.name for t in spec.outputs}),
        )
    names = dimensions(spec, name)
    turns = permutations(range(len(names)))
    turn = next((t for t in turns if "_".join(names[d] for d in t) == order), None)
    same = turn == tuple(range(len(names))) and dtype is None
    if turn is None or same or _fixed(spec, name):
        raise KernelError(
            f"`order={order}` is no other order of `{name}`, whose dimensions "
            f"are {', '.join(names) or 'none'}",
            place=decision.place,
            hint="name each dimension once, the one that lies contiguous last: order=n_k",
        )
    if name in {t.name for t in spec.inputs}:
        return _copied(spec, decision, names, turn)
    if dtype is not None:
        raise KernelError(
            f"`{name}` is computed here, so its layout rounds nothing",
            place=decision.place,
            allowed=", ".join(t.name for t in spec.inputs if t.dtype == "f32"),
            hint=f"drop dtype={dtype}",
        )
    return reordered(spec, name, turn)


def dimensions(spec: Spec, name: str) -> tuple[str, ...]:
    """A name for each dimension of a tensor.

    For a computed tensor it is the index. For an input it is the first index of the position at
    which it is read, or `d0`, `d1`, ... if there is no such index or it names another dimension.
    """
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
    """Whether a tensor is a scatter's target: its positions are no plain indices and cannot be
    permuted."""
    return any(e.target == name and e.accumulate for e in spec.equations)


def _copied(spec: Spec, decision: Decision, names: tuple[str, ...], turn: tuple[int, ...]) -> Spec:
    name, copy = decision.subject, copy_of(decision)
    at = tuple(Index(f"{copy}_{index}") for index in names)
    require_free(spec, (copy, *(i.name for i in at)), decision)
    whole: Expr = Read(name, at)
    if dtype := decision.option("dtype"):
        whole = Cast(str(dtype), whole)
        lines = tuple(_fed(e, name, copy, turn) for e in spec.equations)
        _require_operand(spec, decision, lines)
        spec = replace(spec, equations=lines)
    else:
        spec = reordered(spec, name, turn, copy)
    made = Equation(copy, tuple(at[d] for d in turn), whole)
    return replace(spec, equations=(made, *spec.equations))


def _fed(equation: Equation, name: str, to: str, turn: tuple[int, ...]) -> Equation:
    """Lets the operands of a contraction read the copy. Its other reads and other equations
    stay."""
    if contraction(equation) is None:
        return equation
    parts = factors(equation.reduce.body)
    fed = [transposed(p, name, to, turn) if isinstance(p, Read) else p for p in parts]
    return replace(equation, value=replace(equation.reduce, body=product(tuple(fed))))


def _require_operand(spec: Spec, decision: Decision, fed: tuple[Equation, ...]) -> None:
    """Raises KernelError if the tensor to round is not f32, or is no operand of a contraction."""
    given = next(t for t in spec.inputs if t.name == decision.subject)
    if given.dtype != "f32" or fed == spec.equations:
        what = f"is {given.dtype}" if given.dtype != "f32" else "is no operand of a product"
        raise KernelError(
            f"`{given.name}` {what}, so no copy of it is rounded",
            place=decision.place,
            hint=f"drop dtype={decision.option('dtype')}",
        )
