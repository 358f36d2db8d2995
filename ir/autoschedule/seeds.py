"""Decisions of a seed schedule besides tile sizes: launch ends, running maxima, factor hoisting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from typing import cast

from ir.contraction import Contraction, contraction
from ir.edits.stages import pipeline
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
from ir.variant.scaled import scaled
from ir.variant.variant import depends, formulate
from ir.verify import facts


def launch_ends(spec: Spec) -> Iterator[Decision]:
    """Launch ends after tensors that are read at indices other than those at which they are
    computed."""
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
    """Whether a read crosses launches anyway.

    That holds if it reads an earlier step of the recurrence, or a tensor outside it.
    """
    found = stepped(spec, e.target)
    if found != stepped(spec, read.tensor):
        return True
    equations = {t: spec.equation(t) for t in (found.targets if found else ())}
    return found is not None and lagging(read, found.index, equations)


def alongside(spec: Spec) -> tuple[Decision, ...]:
    """Fuses the sums of each recurrence over the same index into one loop."""
    made: list[Decision] = []
    for r in recurrences(spec):
        sums = [e for e in map(spec.equation, r.targets) if _reduces(e, "sum")]
        for n, e in enumerate(sums):
            alike = [o for o in sums[n + 1 :] if o.reduce.over == e.reduce.over]
            if alike and not any(depends(spec, o.target, e.target) for o in alike):
                made.append(_fused(e.target, alike[-1].target))
    return tuple(made)


def beside(spec: Spec) -> tuple[Decision, ...]:
    """Fuses independent sums over the same index that read a common tensor into one loop."""
    made: list[Decision] = []
    sums = [e for e in spec.equations if _reduces(e, "sum")]
    for n, e in enumerate(sums):
        alike = [o for o in sums[n + 1 :] if o.reduce.over == e.reduce.over]
        shared = any({*e.sources()} & {*o.sources()} for o in alike)
        if shared and not any(depends(spec, o.target, e.target) for o in alike):
            made.append(_fused(e.target, alike[-1].target))
    return tuple(made)


def walked(spec: Spec) -> tuple[Decision, ...]:
    """Loop-carried values for recurrences whose thread blocks are independent: all steps run in one
    launch.

    The launch ends before equations that read its tensors at other indices. Contractions before it
    that have the index of its steps get launches of their own.
    """
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
                made[Decision("kernel", cast(Equation, before).target)] = None
    known = {*launch_ends(spec), Decision("kernel", lines[-1].target)}
    return tuple(d for d in made if d not in known)


def _elsewhere(read: Read, equations: Mapping[str, Equation], but: str) -> bool:
    """Whether a read of one of these tensors uses indices other than those at which it is computed.

    The dimension of index `but` does not count.
    """
    if read.tensor not in equations:
        return False
    pairs = zip(read.at, equations[read.tensor].at, strict=True)
    return any(at != own and own != Index(but) for at, own in pairs)


def tiled(index: str, size: int, level: str) -> tuple[Decision, Decision]:
    """The decisions that tile an index and place the loop over its tiles."""
    return (
        Decision("tile", index, (("size", size),)),
        Decision("place", f"{index}.outer", (("level", level),)),
    )


def eight(spec: Spec, machine: Machine, found: Contraction) -> bool:
    """Whether both operands are inputs of one 8-bit dtype that the matrix unit takes, possibly with
    scales."""
    if scaled(spec, found, machine) is not None:
        return True
    dtype = together(of_input(spec, found.a), of_input(spec, found.b))
    return dtype in EIGHT and machine.has_matrix(dtype)


def integers(spec: Spec, found: Contraction) -> bool:
    """Whether a contraction is of integers, which no matrix unit takes."""
    tensors, computed = facts(spec).tensors, {e.target for e in spec.equations}
    dtype = together(*(natural(side, tensors, computed) for side in (found.a, found.b)))
    return dtype in INTEGERS


def of_input(spec: Spec, side: Expr) -> str:
    """The dtype of a factor that is an input, possibly cast; f32 for other factors."""
    inner = side.value if isinstance(side, Cast) else side
    inputs = {t.name: t.dtype for t in spec.inputs}
    return inputs.get(inner.tensor, "f32") if isinstance(inner, Read) else "f32"


def online(spec: Spec) -> tuple[Decision, ...]:
    """A running maximum that shares the loop of the sums over the same index.

    The loop of an argmax likewise contains its maximum.
    """
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


def kept(spec: Spec) -> Iterator[tuple[Decision, ...]]:
    """For each reduction whose result a later loop over the same index needs: kept tiles.

    The second loop reads the tiles that the first one loaded. Its sums are fused, and its computed
    values are double-buffered. Everything else that the loops load has a slot for each tile, too.
    """
    for top in (e for e in spec.equations if isinstance(e.value, Reduce) and len(e.reduced) == 1):
        (index,) = top.reduced
        later = [e for e in spec.equations if e is not top and depends(spec, e.target, top.target)]
        sums = [e for e in later if _reduces(e, "sum") and e.reduced == top.reduced]
        if not any(index in (*e.reduced, *e.indices) for e in later):
            continue
        names = dict.fromkeys(r.tensor for r in top.reads() if Index(index) in r.at)
        loop = f"{index}.outer"
        inside = [e.target for e in spec.equations if index in e.indices and e.target not in names]
        inputs = {t.name for t in spec.inputs}
        read = (r for e in spec.equations for r in e.reads() if Index(index) in r.at)
        loads = [n for n in dict.fromkeys(r.tensor for r in read) if n in inputs - names.keys()]
        yield (
            *(_fused(s.target, sums[-1].target) for s in sums[:-1]),
            *(Decision("keep", name, (("over", loop),)) for name in (*names, *loads)),
            *(pipeline(name, 2) for name in inside),
        )


def hoisted(spec: Spec) -> tuple[Decision, ...]:
    """Factor hoisting wherever it is legal, and fusion of the sums that it makes independent."""
    made: list[Decision] = []
    # Legality is not decomposable: try each pair on top of the decisions made so far.
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
    """The reduction axes of the equations that fuse and online decisions name."""
    into = {str(d.option("into")) for d in decisions if d.verb in ("fuse", "online")}
    return {i for e in spec.equations if e.target in into for i in e.reduced}


def _legal(spec: Spec, decisions: list[Decision]) -> bool:
    try:
        formulate(spec, Schedule(spec.name, tuple(decisions)))
    except KernelError:
        return False
    return True


def reduced_by(value: object) -> tuple[str, ...]:
    """The indices that the right side of an equation reduces or scans."""
    if isinstance(value, Reduce):
        return value.over
    return (value.along,) if isinstance(value, Scan) else ()
