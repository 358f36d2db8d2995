"""Groups of equations that share a kernel, built one equation at a time.

A group is one of four kinds:

MAP: pointwise equations over the same indices.
ROWS: reductions over short rows, or over so many rows that each can have a thread block, with the
    pointwise work before and after.
HEAVY: one contraction, window or long reduction with its epilogue. A long reduction can have its
    prologue in the group, too.
ALONE: a scan, a recurrence, a jagged reduction or an accumulation. A scan can have a prologue but
    no epilogue.

Index names are unified within a group: each tensor is read by the names under which it is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ir.affine import affine
from ir.contraction import contraction
from ir.sizes import power_of_two
from ir.spec import Apply, Equation, Expr, Facts, Index, Number, Read, Reduce, Scan
from ir.visit import reindexed

LONGEST_ROW = 8192  # elements of a row that one thread block can hold
# Largest size of an index that a tile of a convolution's results can hold whole, and the least size
# where its side (M or N) has several indices.
LONGEST_SIDE, SHORTEST_SIDE = 256, 32
# For an index that a thread block loops over in several tiles: its largest size, the reductions
# that allow it, and the tile size.
LONGEST_LOOP, LOOPED, LOOP = 1024, ("sum", "max", "min"), 128
MOST_STEPS = 64  # steps over an index that has inner indices in memory
OUTSIDE = 0.25  # share of an index's extent by which its tiles can exceed it
# With this many rows, one thread block per row keeps a machine busy at any row length.
MANY_ROWS = 1024
MOST_EQUATIONS = 24
MAP, ROWS, HEAVY, ALONE = "map", "rows", "heavy", "alone"


@dataclass(slots=True)
class Group:
    """A group under construction."""

    kind: str  # MAP, ROWS, HEAVY or ALONE
    equations: list[Equation] = field(default_factory=list)
    # By tensor: the unified indices at which it is computed.
    at: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: dict[str, Expr] = field(default_factory=dict)  # by index: its size
    # Indices that the reductions keep, or those of the heavy equation; None in a map.
    rows: frozenset[str] | None = None
    # Of a heavy group: reductions of the heavy equation's results, and the equations over what they
    # leave.
    reduced: set[str] = field(default_factory=set)

    @property
    def targets(self) -> frozenset[str]:
        """The tensors that the group computes."""
        return frozenset(self.at)

    def copy(self) -> Group:
        """A copy that can be extended without changing this group."""
        return replace(
            self,
            equations=list(self.equations),
            at=dict(self.at),
            ranges=dict(self.ranges),
            reduced=set(self.reduced),
        )


def begun(e: Equation, facts: Facts) -> Group:
    """A new group of one equation."""
    made = Group(kind_of(e, facts))
    if made.kind == HEAVY:
        made.rows = frozenset(e.indices)
    ranges = {i: facts.ranges[i].high for i in _all_indices(e)}
    _added(made, e, {i: i for i in ranges}, ranges)
    return made


def recurring(equations: Sequence[Equation], facts: Facts) -> Group:
    """The group of a recurrence.

    Indices of the same size in the same dimension share one name, so that the equations can share
    loops. A tensor that is always read at the same indices is computed at those.
    """
    named = {e.target: _named(e, _threads(e, facts)) for e in equations}
    made = Group(ALONE)
    for e in equations:
        places = {r.at for other in named.values() for r in other.reads() if r.tensor == e.target}
        names = _threads(e, facts)
        if len(places) == 1 and not e.reduced:
            plain = [p.name for p in (*places,)[0] if isinstance(p, Index)]
            if len(plain) == len(e.indices):
                names |= dict(zip(e.indices, plain, strict=True))
        _added(made, e, names, {names[i]: facts.ranges[i].high for i in names})
    return made


def whole_chain(equations: Sequence[Equation], facts: Facts) -> Group | None:
    """The group of a chain (`ir/partition/chains.py`) and its epilogue, in order.

    None if an equation reads another one at indices other than those at which it is computed.
    """
    first, *others = equations
    made = begun(first, facts)
    for e in others:
        if e.accumulate or (names := _unified(made, e, facts)) is None:
            return None
        _added(made, e, names, {names[i]: facts.ranges[i].high for i in _all_indices(e)})
    return made


def _threads(e: Equation, facts: Facts) -> dict[str, str]:
    """Names each index of an equation by its dimension and size."""
    names = {i: _thread("d", n, facts.ranges[i].high) for n, i in enumerate(e.indices)}
    reduced = [i for i in _all_indices(e) if i not in names]
    return names | {i: _thread("f", n, facts.ranges[i].high) for n, i in enumerate(reduced)}


def _thread(kind: str, place: int, size: Expr) -> str:
    """The shared name of all indices of one size in one dimension."""
    return f"{kind}{place}_{size.value if isinstance(size, Number) else 'n'}"


def joined(group: Group, e: Equation, facts: Facts) -> bool:
    """Adds an equation to a group that computes some of its sources; returns False if it does not
    fit."""
    if group.kind == ALONE or len(group.equations) >= MOST_EQUATIONS:
        return False
    kind = kind_of(e, facts)
    if e.accumulate or (kind in (HEAVY, ALONE) and not _of_terms(group, e, kind)):
        return False
    names = _unified(group, e, facts)
    return names is not None and _put(group, e, names, facts)


def beside(
    group: Group, maps: Sequence[Equation], facts: Facts, most: int = MOST_EQUATIONS
) -> Group | None:
    """A copy of a group with independent pointwise equations over equal index sizes.

    None if they do not fit, or if the copy would have more than `most` equations.
    """
    made = group.copy()
    space = max(group.at.values(), key=len)
    for e in maps:
        names = dict(zip(e.indices, space, strict=False))
        alike = all(facts.ranges[i].high == group.ranges[n] for i, n in names.items())
        fits = alike and len(e.indices) == len(space) and len(made.equations) < most
        if group.kind == ALONE or not fits or not _put(made, e, names, facts):
            return None
    return made


def beside_rows(group: Group, e: Equation, facts: Facts) -> bool:
    """Adds a reduction to a ROWS group that reduces the same tensor along the same indices.

    The kernel then reads that tensor once. Returns False if the reduction does not fit.
    """
    if group.kind != ROWS or len(group.equations) >= MOST_EQUATIONS or kind_of(e, facts) != ROWS:
        return False
    for read, (own, reduced) in product(e.reads(), _reduced(group)):
        if read.tensor != own.tensor or read.pad is not None or own.pad is not None:
            continue
        pairs = list(zip(read.at, own.at, strict=True))
        names = {a.name: b.name for a, b in pairs if isinstance(a, Index) and isinstance(b, Index)}
        whole = len(pairs) == len(names) == len(set(names.values()))
        whole = whole and all(facts.ranges[a].high == group.ranges[b] for a, b in names.items())
        if (
            whole
            and set(names) == set(_all_indices(e))
            and {names[i] for i in e.reduced} == reduced
        ):
            return _put(group, e, names, facts)
    return False


def _reduced(group: Group) -> list[tuple[Read, frozenset[str]]]:
    """The reads of a group's reductions, each with the indices that are reduced."""
    return [(r, frozenset(e.reduced)) for e in group.equations if e.reduced for r in e.reads()]


def _put(group: Group, e: Equation, names: Mapping[str, str], facts: Facts) -> bool:
    """Adds an equation to a group under the given index names; returns False if it does not fit."""
    left = frozenset(names[i] for i in e.indices)
    reduced = frozenset(names[i] for i in e.reduced)
    if not _fits(group, e, left, reduced, names, facts):
        return False
    _added(group, e, names, {names[i]: facts.ranges[i].high for i in _all_indices(e)})
    if (kind := kind_of(e, facts)) in (HEAVY, ALONE):
        group.kind = kind
    return True


def _of_terms(group: Group, e: Equation, kind: str) -> bool:
    """Whether a heavy equation or a scan can take the group, a map, as its prologue."""
    return group.kind == MAP and (takes_terms(e, kind) or isinstance(e.value, Scan))


def takes_terms(e: Equation, kind: str) -> bool:
    """Whether a reduction of this kind can share a kernel with the pointwise equations before
    it."""
    return kind == ROWS or kind == HEAVY and contraction(e) is None and not windowed(e)


def _fits(
    group: Group,
    e: Equation,
    left: frozenset[str],
    reduced: frozenset[str],
    names: Mapping[str, str],
    facts: Facts,
) -> bool:
    space = max((frozenset(at) for at in group.at.values()), key=len)
    if group.kind == HEAVY:
        return _follows(group, e, left, reduced)
    if kind_of(e, facts) == HEAVY:
        return space == left | reduced
    if group.kind == MAP and not reduced:
        return left == space
    rows = group.rows if group.kind == ROWS else left if reduced else None
    if rows is None or not rows <= left:
        return False
    if reduced and (left != rows or (group.kind == MAP and not rows <= space)):
        return False
    own = {names[i]: facts.ranges[i].high for i in _all_indices(e)}
    inner = {**group.ranges, **own}
    # A row longer than those of the group's reductions has no loop of theirs to share.
    before = _extent([s for i, s in group.ranges.items() if i not in rows])
    if not reduced and _extent([own[i] for i in left - rows]) > max(LONGEST_ROW, before):
        return False
    return _one_program([inner[i] for i in inner if i not in rows], [inner[i] for i in rows])


def _follows(group: Group, e: Equation, left: frozenset[str], reduced: frozenset[str]) -> bool:
    """Whether an equation fits in the epilogue of a heavy one.

    It fits if it has all indices of the heavy equation, if it reduces one index of a convolution
    that a tile of results can hold whole, or if it has the indices that such a reduction leaves.
    """
    kept = {frozenset(at) for t, at in group.at.items() if t in group.reduced}
    rows = group.rows or frozenset()
    held = all(_extent([group.ranges[i] for i in rows - at]) <= LONGEST_SIDE for at in kept)
    if not reduced:
        return held and left == rows or left in kept
    if len(reduced) > 1 or left == rows or left | reduced != rows:
        return False
    heavy = [c for e in group.equations if windowed(e) and (c := contraction(e)) is not None]
    if len(heavy) != 1 or not held or any(left != at for at in kept):
        return False
    (index,) = reduced
    side = next((s for s in (heavy[0].rows, heavy[0].columns) if index in s), ())
    looped = e.reduce.reduction in LOOPED and not kept
    extent = int(_extent([group.ranges[index]]))
    if side and looped and index != side[-1]:
        # Outer indices are stepped through one by one; each step uses the usual tiles.
        return extent <= MOST_STEPS
    return bool(side) and suits_tile(extent, len(side) > 1, looped)


def suits_tile(extent: int, several: bool, looped: bool) -> bool:
    """Whether a tile of a convolution's results can hold an index of `extent` values whole.

    several: the index is one of several on its side (M or N), of which the schedule could tile any.
    looped: a thread block can loop over the index in several tiles.
    """
    if extent > (LONGEST_LOOP if looped else LONGEST_SIDE) or several and extent < SHORTEST_SIDE:
        return False
    tile = power_of_two(extent) if extent <= LONGEST_SIDE else LOOP
    return -(-extent // tile) * tile <= (1 + OUTSIDE) * extent or not several


def _one_program(row: list[Expr], rows: list[Expr]) -> bool:
    """Whether one thread block can process a whole row: rows are short, or there are many of
    them."""
    return _extent(row) <= LONGEST_ROW or _extent(rows) >= MANY_ROWS


def _extent(sizes: list[Expr]) -> float:
    """The number of elements; unknown sizes count as 1."""
    total = 1.0
    for size in sizes:
        total *= float(size.value) if isinstance(size, Number) else 1.0
    return total


def kind_of(e: Equation, facts: Facts) -> str:
    """The kind of a group that starts with this equation."""
    if e.accumulate or isinstance(e.value, Scan):
        return ALONE
    if not isinstance(e.value, Reduce):
        return MAP
    if any(r.jagged for r in e.value.ranges):
        return ALONE
    row, rows = ([facts.ranges[i].high for i in found] for found in (e.reduced, e.indices))
    extremum = e.value.reduction in ("argmax", "argmin")
    heavy = extremum or windowed(e) or contraction(e) is not None
    return ROWS if _one_program(row, rows) and not heavy else HEAVY


def windowed(e: Equation) -> bool:
    """Whether a reduction reads through windows (several indices in one position), as convolutions
    and poolings do."""
    for read in e.reads():
        forms = [affine(p) for p in read.at]
        if any(f is None or len(f.terms) > 1 or read.pad is not None for f in forms):
            return True
    return False


def reordering(group: Group, facts: Facts) -> int | None:
    """The place of the first equation in a group that stores a pooling's results, or elements with
    zeros between them, in another memory order; None if there is none.

    A thread block that pools and reorders reads few pixels of many planes, again for each tap. On
    an H200 six such kernels moved 0.95 to 1.84 TB/s, one of them 1.09 to 1.14 with any of seven
    tiles and thread counts. A pooling of planes of that size moved 3.96, and permuted copies 3.7
    and 3.8. With zeros between elements of 16 x 32 x 64 x 128 (316 x 636 afterwards), one kernel
    took 460 to 495 us there in six schedules; apart, the two took 134 and 207 us.
    """
    for n, e in enumerate(group.equations):
        if e.at and (_pools(e) or _spaces(e)):
            later = range(n + 1, len(group.equations))
            return next((m for m in later if group.equations[m].at[-1:] != e.at[-1:]), None)
    return None


def _pools(e: Equation) -> bool:
    """Whether an equation reduces windows along rows, without a filter."""
    if not isinstance(e.value, Reduce) or not windowed(e) or contraction(e) is not None:
        return False
    return any(r.at and _slides(r.at[-1], e.at[-1], e.reduced) for r in e.reads())


def _spaces(e: Equation) -> bool:
    """Whether an equation puts zeros between the elements of rows."""
    value = e.value
    if not isinstance(value, Apply) or value.function != "where" or value.args[2:] != (Number(0),):
        return False
    return any(
        r.at and _divides(r.at[-1], e.at[-1]) for r in value.args[1].walk() if isinstance(r, Read)
    )


def _divides(position: Expr, last: Expr) -> bool:
    """Whether a position is an index of the result, divided."""
    return isinstance(position, Apply) and position.function == "floordiv" and last in position.args


def _slides(position: Expr, last: Expr, taps: Collection[str]) -> bool:
    """Whether a position moves along an index of the result and along filter taps."""
    found = {i for i in position.walk() if isinstance(i, Index)}
    return last in found and any(i.name in taps for i in found)


def _unified(group: Group, e: Equation, facts: Facts) -> dict[str, str] | None:
    """The names of an equation's indices within a group.

    None if the equation reads a tensor of the group at indices other than those at which it is
    computed.
    """
    names: dict[str, str] = {}
    for read in e.reads():
        if read.tensor not in group.at:
            continue
        for position, index in zip(read.at, group.at[read.tensor], strict=True):
            if read.pad is not None or not isinstance(position, Index):
                return None
            if facts.ranges[position.name].high != group.ranges[index]:
                return None
            if names.setdefault(position.name, index) != index:
                return None
    if len(set(names.values())) < len(names):
        return None
    for index in _all_indices(e):
        if index in names:
            continue
        size = facts.ranges[index].high
        # An index that no source names shares a row index of the same size, and so its loop.
        same = (
            n
            for n, s in group.ranges.items()
            if s == size and n not in names.values() and _may_share(group, n)
        )
        names[index] = next(same, index)
    return names


def _may_share(group: Group, index: str) -> bool:
    """Whether a new index can take the name of an existing one: only of one inside a row."""
    return group.kind == ROWS and group.rows is not None and index not in group.rows


def _added(group: Group, e: Equation, names: Mapping[str, str], ranges: Mapping[str, Expr]) -> None:
    made = _named(e, names)
    group.equations.append(made)
    group.at[e.target] = made.indices
    group.ranges.update(ranges)
    if group.kind == HEAVY and group.rows is not None and frozenset(made.indices) != group.rows:
        group.reduced.add(e.target)
    if isinstance(e.value, Reduce) and group.kind in (MAP, ROWS):
        group.kind, group.rows = ROWS, frozenset(made.indices)


def _named(e: Equation, names: Mapping[str, str]) -> Equation:
    """Renames the indices of an equation."""

    def name(index: str) -> str:
        return names.get(index, index)

    at = tuple(reindexed(p, name) for p in e.at)
    return replace(e, at=at, value=reindexed(e.value, name))


def _all_indices(e: Equation) -> tuple[str, ...]:
    found = [n.name for p in (*e.at, e.value) for n in p.walk() if isinstance(n, Index)]
    return tuple(dict.fromkeys((*e.indices, *found, *e.reduced)))
