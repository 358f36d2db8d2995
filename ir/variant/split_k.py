"""Split-K: a reduction as partial reductions in parallel and a second pass over the parts."""

from __future__ import annotations

from dataclasses import replace

from ir.affine import fold_constants
from ir.contraction import factors, product
from ir.errors import KernelError
from ir.schedule import Decision, Schedule
from ir.spec import Apply, Cast, Equation, Expr, Index, Number, Range, Read, Reduce, Spec
from ir.variant.derived import needed, part_of, parts_of, require_free
from ir.verify import facts

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")


def split_k(spec: Spec, decision: Decision, schedule: Schedule) -> Spec:
    """Applies a `split_k` decision.

    before: acc[m, n] = sum(f, k)
    after:  acc_parts[acc_s, m, n] = sum(f, k=range(acc_s * C, minimum((acc_s + 1) * C, K))),
            which ends a launch; acc[m, n] = sum(acc_parts[acc_s, m, n], acc_s=parts)

    C is the least multiple of k's tile with which the parts cover K. Legal for a reduction whose
    partial results can be reduced again, over an index with a tile and a static range, that shares
    its loop with no other reduction. 16-bit parts become f32.
    """
    over = str(needed(decision, "over"))
    count = needed(decision, "parts")
    equation = _reduction(spec, decision)
    _require_alone(schedule, decision)
    parts, s = parts_of(decision), part_of(decision)
    require_free(spec, (parts, s), decision)
    low, high = _bounds(spec, decision, schedule, over, int(count), Index(s))
    value = equation.reduce
    ranges = (*(r for r in value.ranges if r.index != over), Range(over, low, high))
    first = Equation(parts, (Index(s), *equation.at), replace(value, ranges=ranges))
    read = Read(parts, first.at)
    whole = Reduce(value.reduction, read, (s,), (Range(s, Number(0), Number(int(count))),))
    made = _with(spec, equation, first, replace(equation, value=whole))
    if facts(made).tensors[parts].dtype not in ("bf16", "f16"):
        return made
    # 16-bit parts would be rounded, and could overflow, before they are summed: make them f32.
    body = product(tuple(Cast("f32", f) for f in factors(value.body)))
    first = replace(first, value=replace(first.reduce, body=body))
    return _with(spec, equation, first, replace(equation, value=whole))


def _with(spec: Spec, old: Equation, first: Equation, second: Equation) -> Spec:
    at = spec.equations.index(old)
    lines = (*spec.equations[:at], first, second, *spec.equations[at + 1 :])
    return replace(spec, equations=lines)


def _reduction(spec: Spec, decision: Decision) -> Equation:
    """The reduction to split. Raises KernelError if there is none or it cannot be split."""
    able = {
        e.target: e
        for e in spec.equations
        if isinstance(e.value, Reduce) and e.value.reduction in REDUCTIONS and not e.accumulate
    }
    found = able.get(decision.subject)
    over = str(decision.option("over"))
    if found is None:
        raise KernelError(
            f"`{decision.subject}` is no reduction whose parts can be reduced again",
            place=decision.place,
            allowed=", ".join(able) or "none",
        )
    part = any(r.partial for r in found.reduce.ranges if r.index == over)
    if over not in found.reduced or facts(spec).ranges[over].jagged or part:
        raise KernelError(
            f"`{decision.subject}` does not reduce `{over}`, or reduces it over a jagged range or a part of one",
            place=decision.place,
            allowed=", ".join(found.reduced),
        )
    return found


def _require_alone(schedule: Schedule, decision: Decision) -> None:
    for verb in ("fuse", "online"):
        for other in schedule.of(verb):
            if decision.subject in (other.subject, other.option("into")):
                raise KernelError(
                    f"`{decision.subject}` shares its loop by `{other}`, so it is not split",
                    place=decision.place,
                    hint=f"drop {other}",
                )


def _bounds(
    spec: Spec, decision: Decision, schedule: Schedule, over: str, count: int, s: Index
) -> tuple[Expr, Expr]:
    """The first position of part `s` of the index, and the position after its last."""
    tile = schedule.find("tile", over)
    if tile is None or count < 2:
        raise KernelError(
            f"`{over}` has no tile, so its parts have no length"
            if count > 1
            else f"`parts={count}` are no parts",
            place=decision.place,
            allowed="parts=2 or more",
            hint=f"tile({over}, size=32)",
        )
    size, step = facts(spec).ranges[over].high, tile.number("size", 1)
    round_up = fold_constants("add", size, Number(count * step - 1))
    if isinstance(round_up, Number):
        tiles: Expr = Number(round_up.value // (count * step))
    else:
        tiles = Apply("floordiv", (round_up, Number(count * step)))
    length = fold_constants("mul", Number(step), tiles)
    after = Apply("mul", (Apply("add", (s, Number(1))), length))
    return Apply("mul", (s, length)), Apply("minimum", (after, size))
