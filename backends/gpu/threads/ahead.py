"""Runs the first of two matmuls of a loop one iteration ahead, and the second one iteration later.

    s = q @ k[0];  t = g(s);  s = q @ k[1];  p = h(t)        f = h of g, where g alone reads s
    for n from 1 on:  o += p @ v[n - 1]                      in flight beside g and h
                      t = g(s);  s = q @ k[n + 1]            in flight beside h and what follows
                      p' = h(t);  wait for o;  o *= scale;  p = p';  wait for s
    o += p @ v[last]

The tensor cores compute both matmuls beside the other units, so no iteration waits for its own
matmuls. The last iteration multiplies its own stage again, and nothing reads the result. So no
matmul is conditional.

The remaining critical path of an iteration is the chain of its own values. Two transformations
shorten it: each thread accumulates its own elements and the partial sums are combined after the
loop, and factors that rescale sums become powers of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from backends.gpu import tile as of
from backends.gpu.threads import thread as to
from backends.gpu.threads.overlaps import Overlap, last_made, refused, written
from backends.gpu.threads.prune import reads
from backends.gpu.tile import Name
from ir.spec import Expr, Number


@dataclass(frozen=True, slots=True)
class Ahead:
    """The parts of the body of a loop with one matmul ahead."""

    own: to.Block  # before anything reads the first result
    clear: to.Block  # initialises the first result
    first: to.WarpgroupMultiply
    reading: to.Block  # from the first reader of the first result to the last
    beside: to.Block  # computed while the next first matmul is in flight
    updates: to.Block  # changes the second result and its operand
    later: to.WarpgroupMultiply
    begin: to.Block  # before the loop
    end: to.Block  # after the loop

    def once(self, stage: Expr, await_next: to.Block, next_stage: Expr) -> to.Block:
        """The first iteration, after the wait for its stage."""
        return (
            *self.own,
            *self.clear,
            self.first,
            *self.reading,
            *await_next,
            *self.clear,
            replace(self._of_next(stage, next_stage), pending=1),
            *self.beside,
            *self.updates,
            to.WarpgroupWait(self.first.to),
        )

    def again(
        self,
        stage: Expr,
        await_next: to.Block,
        next_stage: Expr,
        stage_before: Expr,
        freed: to.Block,
    ) -> to.Block:
        """Each later iteration. freed: statements that release the stage of the iteration before."""
        return (
            replace(self.later, b_stage=stage_before, pending=1),
            *self.own,
            *self.reading,
            *await_next,
            *self.clear,
            replace(self._of_next(stage, next_stage), pending=2),
            *self.beside,
            to.WarpgroupWait(self.later.to, pending=1, after=last_made(self.beside)),
            *freed,
            *self.updates,
            to.WarpgroupWait(self.first.to),
        )

    def _of_next(self, stage: Expr, next_stage: Expr) -> to.WarpgroupMultiply:
        sides = (self.first.a_stage, self.first.b_stage)
        a, b = (next_stage if side == stage else side for side in sides)
        return replace(self.first, a_stage=a, b_stage=b)


def parts_ahead(
    parts: Overlap,
    fragments: Mapping[Name, to.Fragment],
    temporary: Callable[[str, tuple[to.Axis, ...]], Name],
) -> Ahead:
    """The parts of a loop whose second matmul may be one iteration later. Raises BackendError where
    the first one cannot be one ahead. temporary: makes a fragment of a dtype and axes."""
    first = parts.first
    clear = tuple(s for s in parts.before if written(s) == {first.to})
    own = tuple(s for s in parts.before if s not in clear)
    if any((written(s) | reads([s])) & {first.to, first.a} for s in own):
        raise refused(first.to, "ahead", "its loop computes an operand of it")
    between = tuple(_rescaled(s, fragments) for s in parts.between)
    last = max((n for n, s in enumerate(between) if first.to in reads([s])), default=-1)
    reading, beside = between[: last + 1], between[last + 1 :]
    if any(first.to in written(s) for s in between) or first.to in reads(parts.updates):
        raise refused(first.to, "ahead", "its loop changes it, or needs it to the end")
    if reading and isinstance(s := reading[-1], to.Each) and isinstance(s.value, of.Power):
        held = fragments[s.name]
        exponent = temporary(held.dtype, held.axes)
        value = to.Element(exponent, tuple(a.index for a in held.axes))
        reading = (*reading[:-1], to.Each(exponent, to.Exponent(s.value)))
        beside = (to.Each(s.name, to.PowerOfTwo(value)), *beside)
    made = Ahead(own, clear, first, reading, beside, parts.updates, parts.later, (), ())
    return _own_sums(made, fragments, temporary)


def _rescaled(s: to.Statement, fragments: Mapping[Name, to.Fragment]) -> to.Statement:
    """An exponential of a difference as a power of two that takes the difference before scaling it:
    the difference of equal numbers is 0 however large they are."""
    match s:
        case to.Each(name, of.Compute("exp", (of.Compute("sub", (a, b), True),))) if (
            fragments[name].dtype == "f32"
        ):
            return replace(s, value=of.Power(a, b, None, True))
    return s


def _own_sums(
    parts: Ahead,
    fragments: Mapping[Name, to.Fragment],
    temporary: Callable[[str, tuple[to.Axis, ...]], Name],
) -> Ahead:
    """Moves the shuffles of sums after the loop: each thread sums its own elements in the loop.
    This is valid because all threads that share a running sum rescale it alike."""
    every = (*parts.own, *parts.reading, *parts.beside, *parts.updates)
    for shuffle in (s for s in parts.beside if isinstance(s, to.Shuffle) and s.reduction == "sum"):
        adds = [s for s in parts.beside if _adds(s, shuffle.name)]
        others = [s for s in every if s is not shuffle and s not in adds]
        if len(adds) != 1 or shuffle.name in reads(others):
            continue
        (add,) = adds
        assert isinstance(add, to.Each), "so it adds"
        held = fragments[add.name]
        scales = [s for s in others if held.name in written(s)]
        if held.name in reads(others) or not all(_scales(s, held, fragments) for s in scales):
            continue
        own = temporary(held.dtype, held.axes)
        indices = tuple(a.index for a in held.axes)
        total, part, value = (to.Element(n, indices) for n in (held.name, shuffle.name, own))
        apart = {id(s): to.Each(own, _put(s.value, total, value)) for s in scales + [add]}  # type: ignore[attr-defined]
        moved: dict[int, to.Block] = {id(shuffle): (), id(add): (apart[id(add)],)}
        moved |= {id(s): (s, apart[id(s)]) for s in scales}
        parts = replace(
            parts,
            reading=tuple(x for s in parts.reading for x in moved.get(id(s), (s,))),
            beside=tuple(x for s in parts.beside for x in moved.get(id(s), (s,))),
            begin=(*parts.begin, to.Each(own, Number(0.0))),
            end=(
                *parts.end,
                replace(shuffle, name=own),
                replace(add, value=_put(add.value, part, value)),
            ),
        )
        return _own_sums(parts, fragments, temporary)
    return parts


def _adds(s: to.Statement, part: Name) -> bool:
    """Whether a statement only adds a part to a running sum."""
    match s:
        case to.Each(name, of.Joined("sum", to.Element(onto), to.Element(value))):
            return (onto, value) == (name, part)
    return False


def _scales(s: to.Statement, held: to.Fragment, fragments: Mapping[Name, to.Fragment]) -> bool:
    """Whether a statement multiplies a running sum by a factor that is the same in all threads that share the sum."""
    match s:
        case to.Each(name, of.Compute("mul", (to.Element(onto), to.Element(by)))):
            return onto == name == held.name and fragments[by].axes == held.axes
    return False


def _put(value: Expr, old: Expr, new: Expr) -> Expr:
    """An expression with one operand replaced by another."""
    match value:
        case of.Joined():
            return replace(
                value,
                onto=new if value.onto == old else value.onto,
                value=new if value.value == old else value.value,
            )
        case of.Compute():
            return replace(value, args=tuple(new if a == old else a for a in value.args))
    return value
