"""Reassociates a matmul chain: `(w * x) * y` in place of `w * (x * y)`."""

from __future__ import annotations

from dataclasses import replace

from ir.contraction import factors, indices, product, sums
from ir.errors import KernelError
from ir.schedule import Decision
from ir.spec import Cast, Equation, Expr, Index, Read, Spec
from ir.variant.derived import require_free
from ir.variant.precision import widened


def associate(spec: Spec, decision: Decision) -> Spec:
    """Applies an `associate` decision.

    before: t[d, k] = sum(x[i, d] * y[i, k], i); z[n, k] = sum(w[n, d] * t[d, k], d)
    after:  t_again[n, i] = sum(w[n, d] * x[i, d], d); z[n, k] = sum(t_again[n, i] * y[i, k], i)

    Legal if t is a contraction, only z reads it, and its factors separate into those with and
    without the outer reduction index. An f16 result of the new first contraction becomes f32: the
    given equations do not have this tensor, and its values can exceed the range of f16.
    """
    name = again(decision.subject)
    require_free(spec, (name,), decision)
    for outer in spec.equations:
        for part in factors(outer.reduce.body) if sums(outer) else ():
            inner = only_reader(spec, outer, part)
            if inner is not None and inner.target == decision.subject:
                for made in reassociated(spec, outer, inner, part, name):
                    return widened(made, name)
    raise KernelError(
        f"`{decision.subject}` is no sum of products that one other sum of products reads",
        place=decision.place,
        allowed=", ".join(associable(spec)) or "no sum here",
        hint=f"drop associate({decision.subject})",
    )


def associable(spec: Spec) -> tuple[str, ...]:
    """The contractions that `associate` can move after the contraction that reads them."""
    found = []
    for outer in spec.equations:
        for part in factors(outer.reduce.body) if sums(outer) else ():
            inner = only_reader(spec, outer, part)
            if inner and reassociated(spec, outer, inner, part, again(inner.target)):
                found.append(inner.target)
    return tuple(found)


def again(tensor: str) -> str:
    """The name of the contraction that replaces `tensor` and runs first."""
    return f"{tensor}_again"


def only_reader(spec: Spec, outer: Equation, part: Expr) -> Equation | None:
    """The sum that `part`, a factor of `outer`, reads at plain indices.

    None if the sum has another reader or is an output.
    """
    read = part.value if isinstance(part, Cast) else part
    if not isinstance(read, Read) or not all(isinstance(x, Index) for x in read.at):
        return None
    users = [e for e in spec.equations if read.tensor in e.sources()]
    reads = [n for n in outer.value.walk() if isinstance(n, Read) and n.tensor == read.tensor]
    inner = [e for e in spec.equations if e.target == read.tensor and sums(e)]
    returned = read.tensor in {t.name for t in spec.outputs}
    if returned or len(users) != 1 or len(reads) != 1 or not inner:
        return None
    clash = set(inner[0].reduce.over) & set(indices(outer.value))
    same = read.at == inner[0].at  # same index names, so the bodies combine without renaming
    return inner[0] if same and not clash else None


def reassociated(spec: Spec, outer: Equation, inner: Equation, part: Expr, name: str) -> list[Spec]:
    """The spec with the inner sum last, in a list; an empty list if its factors do not separate.

    part: the factor of the outer sum that reads the inner one.
    name: of the contraction that runs first.
    """
    over = set(outer.reduce.over)

    def meets(p: Expr) -> bool:
        return bool(over & set(indices(p)))

    # Factors with the outer reduction index must be in the first contraction; the others go to the
    # second.
    others = [p for p in factors(outer.reduce.body) if p is not part]
    inside = factors(inner.reduce.body)
    early = tuple(p for p in (*others, *inside) if meets(p))
    late = tuple(p for p in (*others, *inside) if not meets(p))
    if not over <= set(indices(product(early))) or not any(p in late for p in inside):
        return []
    names = [i for i in indices(product(early)) if i not in over]
    first = Equation(name, tuple(map(Index, names)), outer.value)
    first = replace(first, value=replace(outer.reduce, body=product(early)))
    body = product((Read(first.target, first.at), *late))
    # Each inner reduction index must still occur in the second contraction's body.
    if not set(inner.reduce.over) <= set(indices(body)):
        return []
    second = replace(outer, value=replace(inner.reduce, body=body))
    new = {inner.target: (), outer.target: (first, second)}
    lines = (new.get(e.target, (e,)) for e in spec.equations)
    return [replace(spec, equations=tuple(e for line in lines for e in line))]
