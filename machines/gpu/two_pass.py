"""Two-pass reductions (split-K): reductions that leave most of a machine idle in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ir.contraction import Contraction, contraction, fills
from ir.machine import Machine
from ir.schedule import Decision
from ir.sizes import power_of_two
from ir.sizes import value as number
from ir.spec import Equation, Expr, Index, Reduce, Spec
from ir.variant.derived import part_of
from ir.variant.split_k import REDUCTIONS
from ir.verify import facts

PROGRAMS = 2  # thread blocks per multiprocessor that a split should give
SIDE = 64  # M and N of the part of a matmul that one block computes
LEAST = 512  # least terms of one part of one result element
SUMMED = 256  # least K of one part of a matmul
# Parts of a matmul are multiples of this many terms, where nearly as many parts allow it. Other
# parts would be unaligned and move single elements.
STEP = 16
# Terms of a part above which there are more parts, and the largest factor: finished blocks make
# room for others. On an H200 a loss of 2^28 elements took 0.69 ms in 512 parts and 0.57 ms in 4096.
# Few parts are the fastest for sums over rows whose elements are multiplied by others that all rows
# share: a hinge loss of 2^30 elements took 0.94 ms in 512 and 0.98 ms in 4096 on an H200, 1.39 and
# 1.66 ms on an H100.
LONG, MORE = 1 << 16, 8
AGAIN = 4096  # parts that the second pass reduces at a time
SHORT = 4  # factor by which an index may fall short of the wanted parts before another one is split


def two_pass(spec: Spec, machine: Machine, sizes: Mapping[str, int]) -> tuple[Decision, ...]:
    """A `split_k` of each reduction with fewer results than the machine has multiprocessors and
    many terms per result, with the tile of its second pass.

    sizes: the free and the derived ones.
    """
    ranges = facts(spec).ranges
    extents = {i: 0 if r.jagged else number(r.high, sizes) for i, r in ranges.items()}
    made: list[Decision] = []
    for e in spec.equations:
        if not _splits(e, extents):
            continue
        product = contraction(e)
        product = product if product and fills(product, ranges) else None
        programs = _programs(e, product, extents)
        if programs >= machine.parallel:
            continue
        wanted = power_of_two(-(-PROGRAMS * machine.parallel // programs))
        terms = prod(extents[i] for i in e.reduced)
        if not product and not _shares_rows(spec, e):
            wanted = max(wanted, power_of_two(min(MORE * wanted, terms // LONG)))
        wanted = min(wanted, terms // (SUMMED if product else LEAST))
        over = _over(e, extents, wanted)
        parts = min(wanted, extents[over]) if over else 0
        if product and over:
            parts = _aligned(extents[over], parts)
        if parts < 2:
            continue
        split = Decision("split_k", e.target, (("over", over), ("parts", parts)))
        made.append(split)
        if not product:
            tile = (("size", min(AGAIN, power_of_two(parts))),)
            made.append(Decision("tile", part_of(split), tile))
    return tuple(made)


def stored_apart(spec: Spec, made: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Launch ends after outputs that two-pass reductions read. A launch that stores such an output
    runs over all of its indices, and would compute the parts sequentially."""
    split = {d.subject for d in made if d.verb == "split_k"}
    read = {t for e in spec.equations if e.target in split for t in e.sources()}
    computed = {e.target for e in spec.equations}
    return tuple(Decision("kernel", t.name) for t in spec.outputs if t.name in read & computed)


def _splits(e: Equation, extents: Mapping[str, int]) -> bool:
    """Whether an equation is a reduction with known ranges whose parts can be reduced again."""
    reduction = isinstance(e.value, Reduce) and e.value.reduction in REDUCTIONS and not e.accumulate
    return reduction and all(extents[i] for i in e.reduced)


def _programs(e: Equation, product: Contraction | None, extents: Mapping[str, int]) -> int:
    """The thread blocks of a reduction that is not split."""
    sides = (product.rows, product.columns) if product else ()
    tiles = (-(-prod(extents[i] for i in side) // SIDE) for side in sides)
    beside = {i for side in sides for i in side}
    return prod(tiles) * prod(extents[i] for i in e.indices if i not in beside)


def _shares_rows(spec: Spec, e: Equation) -> bool:
    """Whether some read depends on some, but not all, of the reduced indices."""
    summed = set(e.reduced)
    found = (
        {p.name for p in r.at if isinstance(p, Index)} & summed
        for one in spec.equations
        for r in one.reads()
    )
    return any(0 < len(names) < len(summed) for names in found)


def _over(e: Equation, extents: Mapping[str, int], wanted: int) -> str:
    """The reduced index to split: the longest strided one. A contiguous one only where the others
    are much too short."""
    last = {_last(r.at[-1]) for r in e.reads() if r.at}
    able = [i for i in e.reduced if i in _plain(e)]
    others = [i for i in able if i not in last]
    longest = max(others, key=extents.__getitem__, default="")
    if longest and SHORT * extents[longest] >= wanted:
        return longest
    return max(able, key=extents.__getitem__, default="")


def _aligned(extent: int, parts: int) -> int:
    """This many parts, or down to half as many, where that divides the extent into whole steps."""
    even = (n for n in range(parts, parts // 2, -1) if extent % (n * STEP) == 0)
    return next(even, parts)


def _last(position: Expr) -> str:
    return position.name if isinstance(position, Index) else ""


def _plain(e: Equation) -> set[str]:
    """The indices that are read positions by themselves."""
    return {p.name for r in e.reads() for p in r.at if isinstance(p, Index)}
