"""Index rules: both sides of an equation agree; reductions and scans use indices of their body."""

from __future__ import annotations

from ir.errors import KernelError
from ir.print import expression_text
from ir.spec import Apply, Equation, Expr, Index, Number, Read, Reduce, Scan, Size, Spec

BOUNDS = ("add", "sub", "mul", "floordiv", "mod", "minimum", "maximum")  # in partial ranges


def indices_agree(spec: Spec) -> None:
    """Raises KernelError unless both sides of each equation have the same indices, except reduced
    ones."""
    for e in spec.equations:
        _left_side(e)
        _reductions(e)
        bound = {n.name for x in e.at for n in x.walk() if isinstance(n, Index)}
        for node in e.value.walk():
            if isinstance(node, Index) and node.name not in bound | set(e.reduced):
                raise KernelError(
                    f"the index `{node.name}` is on the right side but not on the left",
                    place=node.place,
                    allowed=", ".join(sorted(bound)) or "none: the left side has no index",
                    hint=f"reduce it: `{e.target}[...] = sum(..., {node.name})`, or add it to the "
                    "left side",
                )


def _left_side(e: Equation) -> None:
    if e.accumulate:
        return
    for k, name in enumerate(e.indices):
        if name in e.indices[:k]:
            raise KernelError(
                f"the left side has the index `{name}` twice",
                place=e.at[k].place,
                hint=f"use two indices; a diagonal is `where({name} == j, ..., 0)`",
            )


def _reductions(e: Equation) -> None:
    if isinstance(e.value, Scan):
        _scan(e.value, e.indices)
    if isinstance(e.value, Reduce):
        _reduce(e.value, {i for x in e.at for i in _names(x)})
        _jagged(e.value)
        _partial(e.value)


def _scan(value: Scan, left: tuple[str, ...]) -> None:
    inside = _names(value.body)
    if value.along not in left or value.along not in inside:
        side = "body" if value.along in left else "left side"
        raise KernelError(
            f"the scan runs along `{value.along}`, which its {side} does not have",
            place=value.place,
            allowed=", ".join(i for i in left if i in inside),
            hint="a scan keeps its index: it is on both sides",
        )


def _reduce(value: Reduce, left: set[str]) -> None:
    inside = _names(value.body)
    for k, index in enumerate(value.over):
        if index in value.over[:k]:
            fault = " twice"
        elif index in left:
            fault = ", which the left side has too"
        elif index not in inside:
            fault = ", which its body does not have"
        else:
            continue
        raise KernelError(
            f"`{value.reduction}` reduces `{index}`{fault}",
            place=value.place,
            allowed=", ".join(sorted(inside - left)),
            hint="reduce each index of the body that the left side does not have, once",
        )


def _jagged(value: Reduce) -> None:
    jagged = [r for r in value.ranges if r.jagged]
    if len(jagged) > 1 or (jagged and value.reduction.startswith("arg")):
        raise KernelError(
            f"`{value.reduction}` runs over {len(jagged)} jagged ranges",
            place=value.place,
            allowed="one, and none in argmax and argmin",
            hint="reduce in two equations",
        )
    for r in jagged:
        for bound in (r.low, r.high):
            if not isinstance(bound, Read) or len(bound.at) != 1 or _names(bound) & set(value.over):
                raise KernelError(
                    f"the range of `{r.index}` has the bound `{expression_text(bound)}`",
                    place=r.place,
                    allowed="a read of a 1-D integer tensor at indices of the left side",
                    hint="write `range(offsets[b], offsets[b + 1])`",
                )


def _partial(value: Reduce) -> None:
    parts = [r for r in value.ranges if r.partial]
    several = len(parts) > 1 and value.reduction != "sum"
    for r in parts:
        nodes = [n for end in (r.low, r.high) for n in end.walk()]
        plain = all(
            isinstance(n, Index | Number | Size) or isinstance(n, Apply) and n.function in BOUNDS
            for n in nodes
        )
        if several or not plain or (_names(r.low) | _names(r.high)) & set(value.over):
            ends = f"{expression_text(r.low)}, {expression_text(r.high)}"
            raise KernelError(
                f"`{value.reduction}` runs over `range({ends})` of `{r.index}`",
                place=r.place,
                allowed="bounds of indices of the left side with + - * // % minimum maximum; several "
                "such ranges in a sum",
                hint="reduce in two equations",
            )


def _names(expr: Expr) -> set[str]:
    return {n.name for n in expr.walk() if isinstance(n, Index)}
