"""Applies the algebraic decisions of a schedule to the equations of a spec."""

from __future__ import annotations

from dataclasses import replace

from ir.contraction import factors, indices, product
from ir.errors import KernelError
from ir.memo import by_identity
from ir.recurrence import earlier
from ir.schedule import Decision, Schedule
from ir.spec import Apply, Equation, Expr, Read, Reduce, Scan, Spec
from ir.variant.associate import associate
from ir.variant.atomic import decided
from ir.variant.derived import TRIPLE
from ir.variant.expansion import expanded
from ir.variant.flatten import flatten
from ir.variant.pack import pack
from ir.variant.precision import triple, widened
from ir.variant.split_k import split_k
from ir.variant.unroll import unroll
from ir.visit import inline, pruned, rebuilt, renamed

# Verbs whose rewrites add tensors or indices, in the order in which they are applied.
BRINGING = ("atomic", "associate", "precision", "split_k", "pack", "unroll", "flatten")
# Verbs on which the legality of a `split_k` depends.
ASKED_BY_SPLIT = ("fuse", "online")


def formulate(spec: Spec, schedule: Schedule) -> Spec:
    """The spec after every algebraic decision. Raises KernelError if one is illegal."""
    for decision in schedule.of("hoist"):
        spec = hoist(spec, decision)
    return rewritten(spec, schedule)


def rewritten(spec: Spec, schedule: Schedule) -> Spec:
    """The spec after the decisions that add tensors or indices, in equations that a loop nest can
    compute."""
    splits = schedule.of("split_k")
    if not splits:
        return _rewritten(spec, schedule.only(BRINGING))
    over = {d.option("over") for d in splits}  # the parts' length depends on its tile
    asked = schedule.only((*BRINGING, *ASKED_BY_SPLIT, "tile"))
    kept = tuple(d for d in asked.decisions if d.verb != "tile" or d.subject in over)
    return _rewritten(spec, replace(asked, decisions=kept))


@by_identity
def _rewritten(spec: Spec, schedule: Schedule) -> Spec:
    """The same, for a schedule without other verbs, so that the memo hits more often."""
    spec = expanded(spec, decided(spec, schedule))
    for decision in schedule.of("associate"):
        spec = associate(spec, decision)
    for decision in schedule.of("precision"):
        if decision.option("dtype") == TRIPLE:
            _find(spec, decision.subject, decision)
            spec = triple(spec, decision, decision.subject)
    for decision in schedule.of("split_k"):
        spec = split_k(spec, decision, schedule)
    for decision in schedule.of("pack"):
        spec = pack(spec, decision)
    for decision in schedule.of("unroll"):
        spec = unroll(spec, decision)
    for decision in schedule.of("flatten"):
        spec = flatten(spec, decision)
    return spec


def hoist(spec: Spec, decision: Decision) -> Spec:
    """Applies a `hoist` decision: moves a factor out of a sum.

    before: a[i] = sum(r[i] * f[i, k], k); y[i] = g(a[i])
    after:  a[i] = sum(f[i, k], k);        y[i] = g(a[i] * r[i])

    Legal if r lacks the reduction index and is a factor of the body, and the sum is no output.
    Every other reader of the sum multiplies by r, too. An f16 sum becomes f32: without the factor r
    its values can exceed the range of f16.
    """
    total, read = freed(spec, decision)
    readers = [e for e in spec.equations if total.target in e.sources()]
    after = {e.target: _scale(e, total.target, read, total.indices) for e in readers}
    return widened(pruned(_swap(spec, {**after, total.target: total})), total.target)


def freed(spec: Spec, decision: Decision) -> tuple[Equation, Read]:
    """The sum from which a `hoist` takes its factor, without that factor, and the read that was
    taken out."""
    factor, into = decision.subject, str(decision.option("into"))
    reader = _find(spec, into, decision)
    for name in reader.sources():
        moved = _without(spec, name, factor)
        if moved is None:
            continue
        if name in {t.name for t in spec.outputs}:
            raise KernelError(
                f"`{factor}` cannot be hoisted into `{into}`: `{name}` is an output",
                place=decision.place,
            )
        return moved
    raise KernelError(
        f"`{factor}` is not a factor of a sum that `{into}` reads",
        place=decision.place,
        hint="hoist takes a factor that lacks the summed index",
    )


def depends(spec: Spec, target: str, on: str) -> bool:
    """Whether an equation needs the tensor `on`, directly or through others; in a recurrence,
    within one step."""
    if target == on:
        return True
    equations = {e.target: e for e in spec.equations}
    seen, todo = set(), [target]
    while todo:
        name = todo.pop()
        if name == on:
            return True
        if name in equations and name not in seen:
            seen.add(name)
            todo.extend(earlier(spec, equations[name]))
    return False


def pointwise(equation: Equation) -> bool:
    """Whether an equation has no reduction, no scan and no scatter."""
    return not isinstance(equation.value, Reduce | Scan) and not equation.accumulate


def _without(spec: Spec, name: str, factor: str) -> tuple[Equation, Read] | None:
    """The sum `name` without `factor` in its body, and the read that was taken out.

    None if the sum has no such factor.
    """
    try:
        total = spec.equation(name)
    except KeyError:
        return None
    if not isinstance(total.value, Reduce) or total.value.reduction != "sum":
        return None
    body = total.value.body
    # Inline pointwise tensors that contain the factor, so that it shows up in the product.
    for equation in reversed(spec.equations):
        between = equation.target in {r.tensor for r in _reads(body)}
        if between and equation.target != factor and pointwise(equation):
            if depends(spec, equation.target, factor):
                body = inline(body, equation)
    parts = factors(body)
    for part in parts:
        if isinstance(part, Read) and part.tensor == factor:
            if set(indices(part)) <= set(total.indices) and len(parts) > 1:
                rest = product(tuple(p for p in parts if p is not part))
                return replace(total, value=replace(total.value, body=rest)), part
    return None


def _scale(reader: Equation, name: str, factor: Read, names: tuple[str, ...]) -> Equation:
    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Read) and expr.tensor == name:
            here = renamed(factor, dict(zip(names, expr.at, strict=True)))
            return Apply("mul", (expr, here))
        return rebuilt(expr, visit)

    return replace(reader, value=visit(reader.value))


def _swap(spec: Spec, new: dict[str, Equation]) -> Spec:
    return replace(spec, equations=tuple(new.get(e.target, e) for e in spec.equations))


def _find(spec: Spec, name: str, decision: Decision) -> Equation:
    try:
        return spec.equation(name)
    except KeyError:
        raise KernelError(
            f"no equation defines `{name}`",
            place=decision.place,
            allowed=", ".join(e.target for e in spec.equations),
        ) from None


def _reads(expr: Expr) -> list[Read]:
    return [n for n in expr.walk() if isinstance(n, Read)]
