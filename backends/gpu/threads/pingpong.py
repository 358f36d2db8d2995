"""Ping-pong: two consumer groups alternate between the tiles of a persistent launch.

While one group multiplies a tile, the other one stores the previous tile. Two signals with a stage
for each group order them:

    group g, for each second tile:  await multiply[g];  the loop over K;   arrive at multiply[1 - g]
                                    await store[g];     the epilogue;      arrive at store[1 - g]

The producers fill one circular buffer for all tiles in order. So each group skips the stages that
belong to the other group. Without the order, a group could wait for a phase several rounds ahead,
which the parity cannot express. The epilogue's shared memory exists once, and the groups use it
alternately.
"""

from __future__ import annotations

from dataclasses import dataclass

from backends.backend import BackendError
from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.barriers import accessed
from backends.gpu.threads.producers import Producers, Ring
from backends.gpu.threads.signals import CONSUMER, Signal
from backends.gpu.threads.staging import Staging
from backends.gpu.tile import Name
from backends.gpu.values import times
from ir.spec import Apply, Expr, Index, Number

GROUPS = 2
PARITY = Name("turn_parity")


@dataclass(frozen=True, slots=True)
class _Section:
    """The statements of a tile, from `first` to `last`, that only one group executes at a time."""

    turn: Name
    first: int
    last: int
    tiles: tuple[Name, ...]  # shared memory that one group passes to the other


def taking_turns(lowering: Staging, once: to.Block, body: to.Block) -> tuple[to.Block, to.Block]:
    """The statements of a consumer group before its first tile, and those for each of its tiles."""
    if not isinstance(lowering, Producers) or len(lowering.own_rings) != 1:
        raise _refused("there is not one pipelined loop that producers copy all in bulk for")
    (ring,) = lowering.own_rings
    lowering.fragment(CONSUMER, "i32")
    lowering.fragment(PARITY, "i32")
    if any(_tiles(s, lowering) for s in once):
        raise _refused("what is done before the first tile goes through shared memory")
    waits = [_waits(s, ring) for s in body]
    at, iterations = next((n, count) for n, count in enumerate(waits) if count is not None)
    sections = _sections(lowering, ring, body, at)
    warps = Number(lowering.threads >> lowering.owners.warp_bits)
    lowering.signals += [Signal(s.turn, GROUPS, warps, s.tiles) for s in sections]
    group, parity = to.Element(CONSUMER), to.Element(PARITY)
    other = Apply("sub", (Number(GROUPS - 1), group))
    found: list[to.Statement] = []
    for place, s in enumerate(body):
        found += [to.Await(x.turn, group, parity) for x in sections if x.first == place]
        found.append(s)
        found += [to.Arrive(x.turn, other, warps=True) for x in sections if x.last == place]
    next_turn = to.Each(PARITY, Apply("sub", (Number(1), parity)))
    # The phase before the first one counts as complete, so group 0 goes first.
    first = to.Each(PARITY, other)
    before = _skipped(ring, Apply("mul", (group, iterations)))
    return (*once, *before, first), (*found, *_skipped(ring, iterations), next_turn)


def _waits(s: to.Statement, ring: Ring) -> Expr | None:
    """How often a statement of a tile waits for a stage of a circular buffer, the same for all tiles; None: never."""
    if isinstance(s, to.Await) and s.signal == ring.full:
        return Number(1)
    inner = [
        n
        for x in (*getattr(s, "body", ()), *getattr(s, "others", ()))
        if (n := _waits(x, ring)) is not None
    ]
    if not inner:
        return None
    ends = (s.low, s.high) if isinstance(s, to.Loop) else ()
    own = any(isinstance(n, Name | Index | to.Element) for e in ends for n in e.walk())
    if not isinstance(s, to.Loop) or own or s.low != Number(0):
        raise _refused("tiles may have loops of unlike lengths")
    known = isinstance(s.high, Number)
    count = Number(-(-int(s.high.value) // s.step)) if known else of.Tiles(s.high, s.step)  # type: ignore[attr-defined]
    return count if inner == [Number(1)] else times(count, *inner)


def _sections(lowering: Staging, ring: Ring, body: to.Block, at: int) -> list[_Section]:
    """The exclusive sections: the loop together with earlier uses of shared memory, and the
    epilogue. A matmul that is in flight when the loop ends is waited for after the section."""
    used = [_tiles(s, lowering) for s in body]
    first = next(n for n, tiles in enumerate(used) if tiles or n == at)
    after = [n for n, tiles in enumerate(used) if tiles and n > at]
    spans = [("multiply", first, at), *([("store", after[0], after[-1])] if after else [])]
    found: list[_Section] = []
    taken: set[str] = set()
    for stem, begin, end in spans:
        tiles = [t for each in used[begin : end + 1] for t in each]
        regions = {t.region for t in tiles}
        if taken & regions:
            raise _refused("the loop and what is stored go through the same shared memory")
        taken |= regions
        handed = tuple(dict.fromkeys(t.name for t in tiles if t.name not in ring.tiles))
        found.append(_Section(Name("turn", stem), begin, end, handed))
    return found


def _tiles(s: to.Statement, lowering: Staging) -> list[to.Shared]:
    """The shared memory tiles that a statement touches."""
    return [t for one in to.statements((s,)) for t in accessed(one, lowering.shared)[0]]


def _skipped(ring: Ring, iterations: Expr) -> list[to.Each]:
    """Statements that advance a group past the other group's iterations in the circular buffer."""
    at, parity = Apply("add", (ring.stage("read"), iterations)), ring.parity("read")
    rounds = Apply("floordiv", (at, Number(ring.stages)))
    moved = [to.Each(parity.name, Apply("mod", (Apply("add", (parity, rounds)), Number(2))))]
    if ring.stages > 1:
        stage = ring.stage("read").name  # type: ignore[attr-defined]
        moved.append(to.Each(stage, Apply("mod", (at, Number(ring.stages)))))
    return moved


def _refused(why: str) -> BackendError:
    return BackendError("emit", f"no two groups of consumers take turns: {why}")
