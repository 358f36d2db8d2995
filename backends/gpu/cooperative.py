"""Cooperative launches: a thread block executes all steps of a recurrence.

    statements that no step changes
    for each step:
        load tensors that no block stores
        await the flags of all blocks of the previous step
        the step;  raise its own flag

All blocks run concurrently, so the awaited ones have begun. Each block has one tile, the same in
all steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from backends.gpu.flags import AcquireAll, Publish
from backends.gpu.tile import (
    Assign,
    Bounds,
    Compute,
    Guard,
    Joined,
    Launch,
    Load,
    Name,
    Place,
    Positions,
    Product,
    Statement,
    Store,
    Term,
    expressions,
    statements,
)
from backends.gpu.values import ZERO, product, times
from ir.nest import nest as of
from ir.spec import Apply, Expr, Index, Number

TILE = Name("tile")
_PLAIN = (Assign, Positions, Bounds, Load)  # statements that may be moved earlier


def gathered(launch: Launch, source: of.Launch) -> Launch:
    """A launch whose blocks execute all steps."""
    assert launch.step is not None and source.repeat is not None and source.meeting is not None
    turn = Name("step", source.repeat.index)
    block = (*launch.grid, *launch.once, *launch.body)
    once = _writes(block)
    stored = _stored(block)
    fixed, each = _unchanging(block, {launch.step, turn}, once, stored)
    early, each = _ahead(each, once, stored)
    own, each = _ahead(each, once, frozenset())
    operands = {n for s in statements(tuple(each)) for n in _multiplied(s)}
    # Direct copies to shared memory come last, so that other loads are in flight while the block
    # waits for them.
    own.sort(key=lambda s: isinstance(s, Load) and s.name in operands)
    at: Expr = turn
    if source.repeat.backwards:
        at = Apply("sub", (_minus_one(source.repeat.size), turn))
    blocks, flags = product(list(launch.tiles)), Name("pointer", source.meeting.flags)
    met = Guard(Compute("gt", (turn, ZERO)), (_met(launch, source, flags, turn),))
    told = Publish(Place(flags, (Term(Apply("add", (times(turn, blocks), TILE))),)))
    return replace(
        launch,
        step=None,
        once=tuple(fixed),
        grid=(),
        body=(Assign(launch.step, at), *early, met, *own, *each, told),
        steps=(turn, source.repeat.size),
    )


def _met(launch: Launch, source: of.Launch, flags: Name, turn: Name) -> AcquireAll:
    """Awaits the blocks of the previous step from which this one may load. Tiles along the last
    axes of a grid are consecutive; along the first ones, a block may only read its own tile."""
    alone = 0
    while alone < len(source.grid) and _reads_own(source, source.grid[alone].index):
        alone += 1
    if source.rasterization is not None:
        alone = 0
    blocks, group = product(list(launch.tiles)), product(list(launch.tiles[alone:]))
    first: Expr = times(_minus_one(turn), blocks)
    if alone:
        own = times(Apply("floordiv", (TILE, group)), group)
        first = Apply("add", (first, own))
    return AcquireAll(Place(flags, (Term(first),)), group)


def _reads_own(source: of.Launch, index: str) -> bool:
    """Whether a launch loads what it stores only at the position along an index at which it stores it."""
    own = ((index, 1),)
    places = {
        s.tensor: [d for d, part in enumerate(s.region) if part.terms == own and _is_zero(part)]
        for s in source.statements()
        if isinstance(s, of.Store)
    }
    return all(
        any(s.region[d].terms == own and _is_zero(s.region[d]) for d in places[s.tensor])
        for s in source.statements()
        if isinstance(s, of.Load) and s.tensor in places
    )


def _is_zero(part: of.Slice) -> bool:
    return part.offset == Number(0) and part.rows is None and part.step == 1


def _unchanging(
    block: Iterable[Statement], changing: set[Name], once: Set[Name], stored: Set[Name]
) -> tuple[list[Statement], list[Statement]]:
    """The statements that do the same in each step, and the others. changing: names that a step
    changes. once: names that only one statement writes. stored: tensors that the launch writes."""
    fixed: list[Statement] = []
    rest: list[Statement] = []
    for s in block:
        plain = isinstance(s, _PLAIN) and s.name in once and not _loads(s, stored)
        if plain and not changing & _read(s):
            fixed.append(s)
        else:
            rest.append(s)
            changing |= _names((s,))
    return fixed, rest


def _ahead(
    block: list[Statement], once: Set[Name], stored: Set[Name]
) -> tuple[list[Statement], list[Statement]]:
    """The loads before the first store that can be hoisted to the front, with the statements on
    which they depend, and the other statements. Loads of stored tensors are not hoisted."""
    waiting = _names(block)
    free: list[Statement] = []
    for s in block:
        if _stored((s,)) and not stored:
            break
        plain = isinstance(s, _PLAIN) and s.name in once and not _loads(s, stored)
        matmul = any(isinstance(e, Product | Joined) for e in expressions(s))
        if plain and not matmul and not waiting & _read(s):
            free.append(s)
            waiting -= _names((s,))
    needed: set[Name] = set()
    first: list[Statement] = []
    for s in reversed(free):
        if isinstance(s, Load) or _names((s,)) & needed:
            first.insert(0, s)
            needed |= _read(s)
    taken = {id(s) for s in first}
    return first, [s for s in block if id(s) not in taken]


def _multiplied(s: Statement) -> set[Name]:
    """The names in operands of matmuls."""
    found = (e for e in expressions(s) if isinstance(e, Product))
    return {n for e in found for n in expressions(e.a, e.b) if isinstance(n, Name)}


def _writes(block: Iterable[Statement]) -> set[Name]:
    """The names that exactly one statement writes."""
    return {n for n, written in Counter(_each_name(block)).items() if written == 1}


def _names(block: Iterable[Statement]) -> set[Name]:
    """The names that statements write."""
    return set(_each_name(block))


def _each_name(block: Iterable[Statement]) -> Iterator[Name]:
    """The name that each statement writes, without statements that write none."""
    return (n for s in statements(tuple(block)) if (n := getattr(s, "name", None)))


def _stored(block: Iterable[Statement]) -> set[Name]:
    """The tensors that statements write."""
    places = (s.place for s in statements(tuple(block)) if isinstance(s, Store))
    return {p.tensor for p in places if isinstance(p.tensor, Name)}


def _read(s: Statement) -> set[Name]:
    """The names that a statement reads."""
    own = getattr(s, "name", None)
    found = [e for e in expressions(s) if isinstance(e, Name | Index)]
    names = {Name("origin", e.name) if isinstance(e, Index) else e for e in found}
    return names - {own} if isinstance(s, _PLAIN) else names


def _loads(s: Statement, stored: Set[Name]) -> bool:
    """Whether a statement reads one of these tensors."""
    return bool(_read(s) & stored)


def _minus_one(e: Expr) -> Expr:
    return Apply("sub", (e, Number(1)))
