"""Computes the region of a global tensor that a read loads, and how its tile is indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ir.affine import Affine, affine, fold_constants
from ir.contraction import indices
from ir.errors import KernelError
from ir.lower.launches import WHOLE, Tiling
from ir.lower.tile_sizes import TileSize
from ir.memo import kept
from ir.nest.nest import Axis, Slice, Window
from ir.spec import Expr, Facts, Number, Read, Tensor


@dataclass(frozen=True, slots=True)
class Access:
    """How a read loads its tensor."""

    region: tuple[Slice, ...]  # one slice per dimension; an indirect one has no `rows` yet
    axes: tuple[Axis, ...]  # of the value that holds the loaded tile
    windows: tuple[Window, ...]  # axes that several indices address together
    shifted: tuple[str, ...]  # axes that are loaded whole, of which a loop uses one tile at a time
    # By dimension: the expression of an indirect position (a gather), else None.
    rows: tuple[Expr | None, ...]
    needed: frozenset[str]  # indices whose tile origins determine the region
    number: int  # equal for reads that load the same region


class Accesses:
    """The accesses of one variant's reads, computed once for everything that they depend on."""

    def __init__(self) -> None:
        # By the read's `id`, its indices in order, which of them are tiled, and `outside`. The read
        # is kept with its access, so that no other read gets its id.
        self._known: dict[object, tuple[Read, Access]] = {}
        self._numbers: dict[object, int] = {}

    def of(
        self, read: Read, tensor: Tensor, tilings: Mapping[str, Tiling], outside: frozenset[str]
    ) -> Access:
        """The region that a read loads under the tilings of a launch.

        outside: indices of the loops that the load is hoisted out of. The region covers their whole
        range.
        """
        inside = indices(read)
        cut = tuple([(i, c.tile > 0) for i, c in tilings.items() if i in inside])
        key = (id(read), cut, outside)
        if key not in self._known:
            found = _access(read, tensor, tilings, outside)
            same = (read.tensor, read.at, read.pad, found.shifted)
            number = self._numbers.setdefault(same, len(self._numbers))
            self._known[key] = read, replace(found, number=number)
        return self._known[key][1]


@kept
def accesses(facts: Facts) -> Accesses:
    """The accesses of the variant with these facts."""
    return Accesses()


def _access(
    read: Read, tensor: Tensor, tilings: Mapping[str, Tiling], outside: frozenset[str]
) -> Access:
    region: list[Slice] = []
    axes: list[Axis] = []
    windows: list[Window] = []
    shifted: list[str] = []
    rows: list[Expr | None] = []
    walked: set[str] = set()  # axes that only indirect positions use
    for dim, position in enumerate(read.at):
        form = affine(position)
        # A decreasing index (x[K - 1 - k]) is no strided slice: its positions are computed, as for
        # a gather.
        if form is None or any(c < 0 for _, c in form.terms):
            region.append(_indirect(position, tilings, outside))
            new = [i for i, _ in region[-1].terms if i not in {a.name for a in axes}]
            axes += [Axis(i, extent(tilings[i])) for i in new]
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
            # The dimension is read together with the gathered rows, element by element.
            walked.discard(one.axis)
            continue
        axes.append(Axis(one.axis, _room(one, tensor.shape[dim], tilings)))
    needed = {i for s in region if not s.whole for i, _ in s.terms if tilings[i].level != WHOLE}
    return Access(
        tuple(region),
        tuple(axes),
        tuple(windows),
        tuple(shifted),
        tuple(rows),
        frozenset(needed),
        0,
    )


def extent(cut: Tiling) -> Expr:
    """The extent of a value along an index: an open tile size, which is filled in later, or the
    whole range."""
    return TileSize(cut.index) if cut.tile else cut.range.high


def _indirect(position: Expr, tilings: Mapping[str, Tiling], outside: frozenset[str]) -> Slice:
    free = [i for i in tilings if i in indices(position)]
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
            f"a window over `{looped[0]}` cannot be loaded outside its loop",
            place=position.place,
        )
    return Slice(name, form.terms, form.offset), Window(name, form.terms)


def _room(one: Slice, size: Expr, tilings: Mapping[str, Tiling]) -> Expr:
    """The extent of the axis that a slice fills; for a window, its span over all its indices."""
    if one.whole:
        return tilings[one.terms[0][0]].range.high
    if len(one.terms) == 1 and one.axis == one.terms[0][0]:
        return extent(tilings[one.axis])
    room: Expr = Number(1)
    for index, coefficient in one.terms:
        steps = fold_constants("add", extent(tilings[index]), Number(-1))
        room = fold_constants("add", fold_constants("mul", Number(coefficient), steps), room)
    return room
