"""Uses of values, which lowering needs to know for a whole launch in advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ir.nest.nest import (
    Dot,
    Fill,
    Launch,
    Load,
    Loop,
    Map,
    Reduction,
    Scan,
    Search,
    Statement,
    Store,
    Take,
    Tile,
)


def late_loads(launch: Launch) -> frozenset[str]:
    """Loaded values that are not held in a variable but read where they are used: whole tables that
    are searched, and values that are read through windows or part by part."""
    found = set()
    for s in launch.statements():
        if isinstance(s, Search):
            found.add(s.borders.value)
        if isinstance(s, Take):
            found.add(s.table.value)
        for tile in tiles(s):
            if tile.windows or tile.shifted:
                found.add(tile.value)
    return frozenset(found)


def transposed(launch: Launch, apart: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Computed values that keep the axis order of the values from which they are computed, so that
    nothing is transposed on the way. apart: values that are not held."""
    held = {v.name: v.names for v in launch.values}
    written = Counter(s.value for s in launch.statements() if hasattr(s, "value"))
    found: dict[str, tuple[str, ...]] = {}
    for s in launch.statements():
        if not isinstance(s, Map) or written[s.value] > 1:
            continue
        names = held[s.value]
        sources = [found.get(t.value, held[t.value]) for t in tiles(s) if t.value not in apart]
        orders = [o for o in sources if set(o) == set(names)]
        if orders and names not in orders:
            found[s.value] = orders[0]
    return found


def idle(launch: Launch) -> frozenset[str]:
    """Carries of scans that run in one step, so that nothing is carried."""
    whole = dict(launch.whole)
    scans = (s for s in launch.statements() if isinstance(s, Scan))
    return frozenset(s.carry for s in scans if s.along in whole)


def hands_on(launch: Launch) -> bool:
    """Whether a loop of the launch has a loop-carried value other than a reduction, i.e. one whose
    value of the previous iteration is read."""
    filled = {s.value for s in launch.statements() if isinstance(s, Fill)}
    for loop in (s for s in launch.statements() if isinstance(s, Loop)):
        own = {s.value for s in loop.body if isinstance(s, Fill)}
        for s in (s for s in loop.body if isinstance(s, Map) and s.value in filled - own):
            if s.value not in {t.value for t in tiles(s)}:
                return True
    return False


def tiles(s: Statement) -> Iterator[Tile]:
    """The tiles that a statement reads."""
    match s:
        case Map():
            yield from (n for n in s.expression.walk() if isinstance(n, Tile))
        case Reduction() | Scan() | Search():
            yield s.source
        case Dot():
            yield from (s.a, s.b, *s.scales)
        case Take():
            yield s.at
        case Load() | Store():
            yield from (one.rows for one in s.region if one.rows is not None)
