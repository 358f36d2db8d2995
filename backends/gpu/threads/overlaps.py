"""Runs a matmul one iteration later, in flight with the matmul from which its next operand is
computed (FlashAttention-3's pipelining within a warpgroup).

    for n:  s = q @ k[n];  p = f(s);  o *= scale;  o += p @ v[n]

    s = q @ k[0];  p = f(s);  o *= scale
    for n from 1 on:  s = q @ k[n] and o += p @ v[n - 1], both in flight
                      wait for s;  p' = f(s);  wait for o;  o *= scale;  p = p'
    o += p @ v[last]

The tensor cores compute `o` while the other units compute `f`. The results are bitwise the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.backend import BackendError
from backends.gpu.threads import thread as to
from backends.gpu.threads.prune import reads
from backends.gpu.tile import Name
from ir.spec import Apply, Expr, Number


@dataclass(frozen=True, slots=True)
class Overlap:
    """The parts of a loop's body. The operand of `later` is computed from the result of `first`."""

    before: to.Block
    first: to.WarpgroupMultiply
    between: to.Block  # touches neither the result nor the operand of `later`
    updates: to.Block  # changes these
    later: to.WarpgroupMultiply

    def once(self) -> to.Block:
        """The first iteration, without `later`."""
        return (*self.before, self.first, *self.between, *self.updates)

    def again(self, stage_before: Expr, freed: Sequence[to.Statement]) -> to.Block:
        """Each later iteration. freed: statements that release the stage of the iteration before."""
        return (
            *self.before,
            replace(self.first, pending=1),
            replace(self.later, b_stage=stage_before, pending=2),
            to.WarpgroupWait(self.first.to, pending=1),
            *self.between,
            to.WarpgroupWait(self.later.to, after=last_made(self.between)),
            *freed,
            *self.updates,
        )


def overlap(
    block: to.Block, later: Name, fragments: Mapping[Name, to.Fragment], tiles: Iterable[Name]
) -> Overlap:
    """The parts of a loop's body whose matmul onto `later` runs one iteration later.

    tiles: those that the loop's pipeline fills, one of which the matmul reads. Raises BackendError
    where the loop does not have this form.
    """
    found = [n for n, s in enumerate(block) if isinstance(s, to.WarpgroupMultiply)]
    every = [s for s in to.statements(block) if isinstance(s, to.WarpgroupMultiply)]
    if len(found) != 2 or len(every) != 2 or block[found[1]].to != later:  # type: ignore[attr-defined]
        raise refused(
            later, "later", "it is not the second of two matmuls of warpgroups in its loop"
        )
    first, second = (block[n] for n in found)
    assert isinstance(first, to.WarpgroupMultiply) and isinstance(second, to.WarpgroupMultiply)
    if second.a not in fragments or second.b not in set(tiles):
        raise refused(
            later,
            "later",
            "its operand A is not in registers, or B is not copied in bulk in the loop",
        )
    own = {second.to, second.a}
    between = block[found[0] + 1 : found[1]]
    updates = [s for s in between if written(s) & own]
    updates = [
        s for s in between if s in updates or _rounds(s, second.a, fragments, block, updates)
    ]
    others = [s for s in (*between, *block[found[1] + 1 :]) if s not in updates]
    if any((written(s) | reads([s])) & own for s in (*block[: found[0]], first, *others)):
        raise refused(later, "later", "the loop uses its result or its operand elsewhere")
    if second.to in reads(updates) or not all(
        written(s) & own or isinstance(s, to.Each) for s in updates
    ):
        raise refused(later, "later", "its operand is not computed by itself")
    for s in updates:  # which move after the others
        passed = block[block.index(s) + 1 :]
        if any(written(x) & reads([s]) for x in passed if x in others):
            raise refused(
                later, "later", "what its operand is computed from changes in the same iteration"
            )
    return Overlap(block[: found[0]], first, tuple(others), tuple(updates), second)


def above(low: Expr, step: int) -> Expr:
    """The start of a loop's second iteration."""
    return Number(step) if low == Number(0) else Apply("add", (low, Number(step)))


def _rounds(
    s: to.Statement,
    operand: Name,
    fragments: Mapping[Name, to.Fragment],
    block: to.Block,
    updates: Sequence[to.Statement],
) -> bool:
    """Whether a statement rounds to the operand's dtype a value that only the updates read. The
    compiler would allocate the operand's registers for it, and wait before it for the matmul in
    flight that reads these."""
    if not isinstance(s, to.Each) or s.name not in fragments:
        return False
    elsewhere = [x for x in block if x is not s and x not in updates]
    return fragments[s.name].dtype == fragments[operand].dtype and s.name not in reads(elsewhere)


def written(s: to.Statement) -> frozenset[Name]:
    """The fragments that a statement, including nested ones, writes."""
    inner = list(to.statements((s,)))
    return frozenset(
        n for x in inner for f in ("name", "to") if isinstance(n := getattr(x, f, None), Name)
    )


def last_made(block: to.Block) -> Name | None:
    """The last fragment that a block computes."""
    made = [s.name for s in block if isinstance(s, to.Each | to.Reduce | to.Shuffle)]
    return made[-1] if made else None


def refused(name: Name, when: str, why: str) -> BackendError:
    """The error for a matmul that cannot run one iteration `later` or `ahead`."""
    what = f"`{name.stem}`" if name.stem else "a matmul"
    return BackendError("emit", f"{what} is not multiplied one iteration {when}: {why}")
