"""Plans: what a first schedule decides beside tile sizes: ends of launches, streams,
hoistings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations

from ir.contraction import Contraction, contraction
from ir.errors import KernelError
from ir.machine import Machine
from ir.recurrence import lagging, ordered, recurrences, stepped
from ir.schedule import Decision, Schedule
from ir.spec import (
    EIGHT,
    INTEGERS,
    Bucketize,
    Cast,
    Equation,
    Expr,
    Index,
    Read,
    Reduce,
    Scan,
    Spec,
)
from ir.variant.expansion import top_of
from ir.variant.precision import natural, together
from ir.variant.variant import depends, formulate
from ir.verify import facts


def launch_ends(spec: Spec) -> Iterator[Decision]:
    """Launches end after what is read at other indices than it is computed at."""
    made = {e.target: e for e in spec.equations}
    ended = set()
    for e in spec.equations:
        for read in e.reads():
            source = made.get(read.tensor)
            if source is None or source.target in ended or _apart(spec, e, read):
                continue
            plain_read = tuple(p.name for p in read.at if isinstance(p, Index))
            if plain_read != source.indices or len(plain_read) != len(read.at):
                ended.add(source.target)
        for node in e.value.walk():
            if isinstance(node, Bucketize) and node.borders in made:
                ended.add(node.borders)
    for e in spec.equations[:-1]:
        if e.target in ended:
            yield Decision("kernel", e.target)


def _apart(spec: Spec, e: Equation, read: Read) -> bool:
    """Whether what an equation reads is of another launch anyway: of an earlier step, or from
    outside its recurrence."""
    found = stepped(spec, e.target)
    if found != stepped(spec, read.tensor):
        return True
    equations = {t: spec.equation(t) for t in (found.targets if found else ())}
    return found is not None and lagging(read, found.index, equations)


def alongside(spec: Spec) -> tuple[Decision, ...]:
    """The sums of each recurrence over the same index share a loop."""
    made: list[Decision] = []
    for r in recurrences(spec):
        sums = [e for e in map(spec.equation, r.targets) if _reduces(e, "sum")]
        for n, e in enumerate(sums):
            alike = [o for o in sums[n + 1 :] if o.value.over == e.value.over]
            if alike and not any(depends(spec, o.target, e.target) for o in alike):
                made.append(_fused(e.target, alike[-1].target))
    return tuple(made)


def walked(spec: Spec) -> tuple[Decision, ...]:
    """Recurrences whose programs need nothing of each other are gone through in one launch, which
    ends before what reads their tensors elsewhere; products before them have one of their own."""
    made: dict[Decision, None] = {}
    lines = ordered(spec)
    for r in recurrences(spec):
        equations = {t: spec.equation(t) for t in r.targets}
        inside = [read for e in equations.values() for read in e.reads()]
        if any(_elsewhere(read, equations, r.index) for read in inside):
            continue
        made[Decision("carry", r.targets[-1])] = None
        for before, e in zip((None, *lines), lines, strict=False):
            if e.target in r.targets:
                continue
            if contraction(e) and r.index in e.indices:
                made[Decision("kernel", e.target)] = None
            if any(_elsewhere(read, equations, "") for read in e.reads()):
                made[Decision("kernel", before.target)] = None
    known = {*launch_ends(spec), Decision("kernel", lines[-1].target)}
    return tuple(d for d in made if d not in known)


def _elsewhere(read: Read, equations: Mapping[str, Equation], but: str) -> bool:
    """Whether a read of one of these tensors is not at the indices that it is computed at, in
    other dimensions than that of one index."""
    if read.tensor not in equations:
        return False
    pairs = zip(read.at, equations[read.tensor].at, strict=True)
    return any(at != own and own != Index(but) for at, own in pairs)


def tiled(index: str, size: int, level: str) -> tuple[Decision, Decision]:
    """An index cut into tiles, and where their loop is placed."""
    return (
        Decision("tile", index, (("size", size),)),
        Decision("place", f"{index}.outer", (("level", level),)),
    )


def eight(spec: Spec, machine: Machine, found: Contraction) -> bool:
    """Whether both operands are inputs of one dtype of 8 bits that the matrix unit takes."""
    dtype = together(of_input(spec, found.a), of_input(spec, found.b))
    return dtype in EIGHT and machine.has_matrix(dtype)


def integers(spec: Spec, found: Contraction) -> bool:
    """Whether a product is of integers, which go to no matrix unit."""
    tensors, computed = facts(spec).tensors, {e.target for e in spec.equations}
    dtype = together(*(natural(side, tensors, computed) for side in (found.a, found.b)))
    return dtype in INTEGERS


def of_input(spec: Spec, side: Expr) -> str:
    """The dtype of a factor that is a read of an input, perhaps cast; f32 otherwise."""
    inner = side.value if isinstance(side, Cast) else side
    inputs = {t.name: t.dtype for t in spec.inputs}
    return inputs.get(inner.tensor, "f32") if isinstance(inner, Read) else "f32"


def online(spec: Spec) -> tuple[Decision, ...]:
    """The sums after a maximum over the same index run along with it; where an extremum is, with
    the extremum."""
    for e in spec.equations:
        if _reduces(e, "argmax") or _reduces(e, "argmin"):
            return (Decision("online", top_of(e.target), (("into", e.target),)),)
    for top in spec.equations:
        sums = [
            e for e in spec.equations if _reduces(e, "sum") and set(e.reduced) == set(top.reduced)
        ]
        if _reduces(top, "max") and sums:
            online = Decision("online", top.target, (("into", sums[-1].target),))
            return (online, *(_fused(s.target, sums[-1].target) for s in sums[:-1]))
    return ()


def hoisted(spec: Spec) -> tuple[Decision, ...]:
    """Factors leave the sums that they can leave; sums that are then independent share a loop."""
    made: list[Decision] = []
    for factor, reader in permutations((e.target for e in spec.equations), 2):
        trial = [*made, Decision("hoist", factor, (("into", reader),))]
        if all(d.subject != factor for d in made) and _legal(spec, trial):
            made = trial
    if not made:
        return ()
    formed = formulate(spec, Schedule(spec.name, tuple(made)))
    sums = [e for e in formed.equations if _reduces(e, "sum")]
    for one, other in combinations(sums, 2):
        apart = not depends(formed, other.target, one.target)
        if apart and set(one.reduced) == set(other.reduced):
            made.append(_fused(one.target, other.target))
    return tuple(made)


def _fused(one: str, into: str) -> Decision:
    return Decision("fuse", one, (("into", into),))


def _reduces(equation: Equation, reduction: str) -> bool:
    return isinstance(equation.value, Reduce) and equation.value.reduction == reduction


def reduced(spec: Spec, decisions: tuple[Decision, ...]) -> set[str]:
    """The indices that the reductions named in fuse and online decisions reduce."""
    into = {str(d.option("into")) for d in decisions if d.verb in ("fuse", "online")}
    return {i for e in spec.equations if e.target in into for i in e.reduced}


def _legal(spec: Spec, decisions: list[Decision]) -> bool:
    try:
        formulate(spec, Schedule(spec.name, tuple(decisions)))
    except KernelError:
        return False
    return True


def reduced_by(value: object) -> tuple[str, ...]:
    """The indices that the right side of an equation reduces or scans over."""
    if isinstance(value, Reduce):
        return value.over
    return (value.along,) if isinstance(value, Scan) else ()
