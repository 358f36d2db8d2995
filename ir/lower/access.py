"""Access: a read of a global tensor as the region that is loaded and how its tile is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ir.affine import Affine, affine, fold
from ir.contraction import indices
from ir.errors import KernelError
from ir.lower.cuts import WHOLE, Cut
from ir.nest.nest import Axis, Slice, Window
from ir.spec import Expr, Number, Read, Tensor


@dataclass(frozen=True, slots=True)
class Access:
    """region: a slice per dimension; an indirect one has no `rows` yet.  rows: per dimension,
    the expression of its positions, or None.  needed: indices whose origins place the region.
    """

    region: tuple[Slice, ...]
    axes: tuple[Axis, ...]
    windows: tuple[Window, ...]
    shifted: tuple[str, ...]
    rows: tuple[Expr | None, ...]
    needed: frozenset[str]


def access(read: Read, tensor: Tensor, cuts: Mapping[str, Cut], outside: frozenset[str]) -> Access:
    """How a read's region lies under the cuts of a launch.

    outside: looped indices that the region covers whole, since it is loaded outside their
    loops.
    """
    region: list[Slice] = []
    axes: list[Axis] = []
    windows: list[Window] = []
    shifted: list[str] = []
    rows: list[Expr | None] = []
    walked: set[str] = set()  # axes that only rows walk along
    for dim, position in enumerate(read.at):
        form = affine(position)
        if form is None or any(c < 0 for _, c in form.terms):
            region.append(_indirect(position, cuts, outside))
            new = [i for i, _ in region[-1].terms if i not in {a.name for a in axes}]
            axes += [Axis(i, extent(cuts[i])) for i in new]
            walked |= set(new)
            rows.append(position)
            continue
        rows.append(None)
        taken = {a.name for a in axes} - walked
        one, window = _slice(form, f"{tensor.name}_{dim}", taken, outside, position)
        region.append(one)
        if one.axis is None:
            continue
        if window:
            windows.append(window)
        if one.whole:
            shifted.append(one.axis)
        if one.axis in walked:
            walked.discard(one.axis)  # beside the rows, element by element
            continue
        axes.append(Axis(one.axis, _room(one, tensor.shape[dim], cuts)))
    needed = {i for s in region if not s.whole for i, _ in s.terms if cuts[i].level != WHOLE}
    return Access(
        tuple(region),
        tuple(axes),
        tuple(windows),
        tuple(shifted),
        tuple(rows),
        frozenset(needed),
    )


def extent(cut: Cut) -> Expr:
    """How many elements of an index a value has room for."""
    return Number(cut.tile) if cut.tile else cut.range.high


def _indirect(position: Expr, cuts: Mapping[str, Cut], outside: frozenset[str]) -> Slice:
    free = [i for i in cuts if i in indices(position)]
    if not free:
        return Slice(None, (), Number(0))
    if outside & set(free):
        raise KernelError(
            "an indirect position is lowered along indices of its own loops",
            place=position.place,
            hint="give the positions their own equation, with one index",
        )
    return Slice(free[0], tuple((i, 1) for i in free), Number(0))


def _slice(
    form: Affine, name: str, taken: set[str], outside: frozenset[str], position: Expr
) -> tuple[Slice, Window | None]:
    if not form.terms:
        return Slice(None, (), form.offset), None
    looped = [i for i, _ in form.terms if i in outside]
    (index, step), *more = form.terms
    if not more and index not in taken:
        return Slice(index, form.terms, form.offset, step=step, whole=bool(looped)), None
    if looped:
        raise KernelError(
            f"a window over `{looped[0]}` cannot be staged outside its loop",
            place=position.place,
        )
    return Slice(name, form.terms, form.offset), Window(name, form.terms)


def _room(one: Slice, size: Expr, cuts: Mapping[str, Cut]) -> Expr:
    """The extent of the axis that a slice fills."""
    if one.whole:
        return cuts[one.terms[0][0]].range.high
    if len(one.terms) == 1 and one.axis == one.terms[0][0]:
        return extent(cuts[one.axis])
    room: Expr = Number(1)
    for index, coefficient in one.terms:
        steps = fold("add", extent(cuts[index]), Number(-1))
        room = fold("add", fold("mul", Number(coefficient), steps), room)
    return room
