"""Finds recurrences: equations that read each other one step earlier along one index.

before: h[t, j] = f(pad(h[t - 1, k], 0.0), ...), a read of what is defined here or later
after:  for t in all its values, in order: the equations of the recurrence, at that t

The value before the first step is the read's `pad`; `where(t == 0, h0[k], pad(h[t - 1, k], 0.0))`
selects another. With reads at t + 1 a recurrence runs from the last step to the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ir.affine import affine
from ir.errors import KernelError
from ir.memo import by_identity
from ir.print import expression_text
from ir.schedule import Decision, Schedule
from ir.spec import Bucketize, Equation, Index, Number, Read, Scan, Spec


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Equations that run together, once for each value of an index."""

    index: str
    targets: tuple[str, ...]  # the tensors that they define, in the order of the text
    backwards: bool  # from the last value to the first


# Looked up by identity first, as hashing a large spec is slow.
@by_identity
@lru_cache(maxsize=1024)
def recurrences(spec: Spec) -> tuple[Recurrence, ...]:
    """The recurrences of a spec, in order. Raises KernelError at a cycle that cannot be stepped
    through.

    A read of a tensor that is defined later, and not one step away, is in none of them.
    """
    first: dict[str, int] = {}
    for n, e in enumerate(spec.equations):
        first.setdefault(e.target, n)
    if not any(first.get(s, -1) >= n for n, e in enumerate(spec.equations) for s in e.sources()):
        return ()
    needs = _closure(spec)
    found: list[Recurrence] = []
    for n, e in enumerate(spec.equations):
        if n != first[e.target] or any(e.target in r.targets for r in found):
            continue
        members = [
            o for o in spec.equations if o.target in needs[e.target] and e.target in needs[o.target]
        ]
        if members and (one := _stepped(members)):
            found.append(one)
    return tuple(found)


def stepped(spec: Spec, target: str) -> Recurrence | None:
    """The recurrence that computes a tensor, or None."""
    return next((r for r in recurrences(spec) if target in r.targets), None)


def lagging(read: Read, index: str, equations: Mapping[str, Equation]) -> bool:
    """Whether a read takes one of these tensors at another step of `index`."""
    e = equations.get(read.tensor)
    if e is None or index not in e.indices or len(read.at) != len(e.at):
        return False
    return read.at[e.indices.index(index)] != Index(index)


def step_before(read: Read, found: Recurrence, equations: Mapping[str, Equation]) -> bool:
    """Whether a read takes a tensor of a recurrence from the previous step."""
    if read.tensor not in found.targets or read.tensor not in equations:
        return False
    lag = 1 if found.backwards else -1
    return (found.index, lag) in _lags(read, equations[read.tensor])


def carried(spec: Spec, schedule: Schedule) -> Mapping[Recurrence, Decision]:
    """The recurrences whose steps one launch loops over, each with its `carry` decision.

    Raises KernelError if a decision names no recurrence, or one a second time.
    """
    found: dict[Recurrence, Decision] = {}
    for decision in schedule.of("carry"):
        one = next((r for r in recurrences(spec) if decision.subject in r.targets), None)
        if one is None:
            raise KernelError(
                f"`{decision.subject}` is part of no recurrence, so nothing is carried",
                place=decision.place,
                allowed=", ".join(t for r in recurrences(spec) for t in r.targets) or "none",
            )
        if one in found:
            raise KernelError(
                f"`{decision}` is decided for the recurrence of `{found[one].subject}` already",
                place=decision.place,
                hint=f"drop {decision}",
            )
        found[one] = decision
    return found


def earlier(spec: Spec, e: Equation) -> tuple[str, ...]:
    """The sources of an equation that are defined before it, and so not from a previous step."""
    if not recurrences(spec):
        return e.sources()
    targets = [o.target for o in spec.equations]
    later = targets[targets.index(e.target) :] if e.target in targets else ()
    return tuple(s for s in e.sources() if s not in later)


def ordered(spec: Spec) -> tuple[Equation, ...]:
    """The equations, with those of each recurrence adjacent.

    Equations between them that do not need the recurrence move before it, the others after it.
    """
    lines = list(spec.equations)
    needs = _closure(spec) if recurrences(spec) else {}
    for r in recurrences(spec):
        places = [n for n, e in enumerate(lines) if e.target in r.targets]
        span = slice(places[0], places[-1] + 1)
        own = [e for e in lines[span] if e.target in r.targets]
        rest = [e for e in lines[span] if e.target not in r.targets]
        after = [e for e in rest if needs[e.target] & set(r.targets)]
        lines[span] = [*(e for e in rest if e not in after), *own, *after]
    return tuple(lines)


def _closure(spec: Spec) -> dict[str, set[str]]:
    """By target: everything that it needs, directly or through other equations."""
    needs = {e.target: set(e.sources()) for e in spec.equations}
    grown = True
    while grown:
        grown = False
        for mine in needs.values():
            more = {s for name in mine if name in needs for s in needs[name]} - mine
            mine |= more
            grown |= bool(more)
    return needs


def _stepped(members: list[Equation]) -> Recurrence | None:
    """The recurrence of a cycle.

    None if a read closes the cycle without a step: an equation is then used before it is defined.
    """
    targets = [e.target for e in members]
    equations = {e.target: e for e in members}
    steps: dict[tuple[str, int], Read] = {}
    for n, e in enumerate(members):
        for read in e.reads():
            if read.tensor in targets[n:]:
                lags = _lags(read, equations[read.tensor])
                if not lags:
                    return None
                steps |= dict.fromkeys(lags, read)
    if not steps:
        return None
    index, lag = _one_step(steps)
    for e in members:
        _require_member(e, index, lag, equations)
    return Recurrence(index, tuple(targets), backwards=lag > 0)


def _lags(read: Read, source: Equation) -> list[tuple[str, int]]:
    """The indices along which a read takes its source at an offset, with the offsets."""
    found: list[tuple[str, int]] = []
    if len(read.at) != len(source.at):
        return found
    for own, position in zip(source.at, read.at, strict=True):
        form = affine(position)
        if isinstance(own, Index) and form and form.terms == ((own.name, 1),):
            if isinstance(form.offset, Number) and form.offset.value:
                found.append((own.name, int(form.offset.value)))
    return found


def _one_step(steps: Mapping[tuple[str, int], Read]) -> tuple[str, int]:
    for (index, lag), read in steps.items():
        if abs(lag) != 1:
            raise KernelError(
                f"a recurrence reads `{read.tensor}` {abs(lag)} steps away along `{index}`",
                place=read.place,
                allowed=f"`{index} - 1`, `{index} + 1`",
                hint="carry what is older along in a tensor of its own",
            )
    if len({index for index, _ in steps}) > 1:
        raise KernelError(
            f"a recurrence runs over {' and '.join(f'`{i}`' for i, _ in steps)}",
            place=list(steps.values())[-1].place,
            allowed="one index",
            hint="read at plain indices in all dimensions but one",
        )
    if len(steps) > 1:
        (index, _), *_ = steps
        raise KernelError(
            f"a recurrence runs both ways along `{index}`",
            place=list(steps.values())[-1].place,
            allowed=f"reads at `{index} - 1` only, or at `{index} + 1` only",
            hint="two directions are two recurrences, each with tensors of its own",
        )
    return next(iter(steps))


def _require_member(e: Equation, index: str, lag: int, equations: Mapping[str, Equation]) -> None:
    """Raises KernelError if an equation cannot be computed step by step."""
    whole = f"`{e.target}` is part of a recurrence over `{index}`"
    if index not in e.indices or e.accumulate:
        why = "is scattered into" if e.accumulate else f"has no index `{index}`"
        raise KernelError(
            f"{whole} and {why}",
            place=e.place,
            allowed=f"tensors that are defined at each `{index}`",
            hint=f"define `{e.target}[{index}, ...]`, or move it out of the recurrence",
        )
    if isinstance(e.value, Scan) and e.value.along == index:
        raise KernelError(
            f"{whole} and scans along `{index}`",
            place=e.value.place,
            hint=f"write the running value as `pad({e.target}[{index} - 1, ...], 0.0) + ...`",
        )
    for node in e.value.walk():
        if isinstance(node, Bucketize) and node.borders in equations:
            raise KernelError(
                f"{whole} and searches in `{node.borders}`, all of which it needs",
                place=node.place,
                hint="search in a tensor that is computed before",
            )
        if isinstance(node, Read) and node.tensor in equations:
            _require_near(node, index, lag, equations[node.tensor])


def _require_near(read: Read, index: str, lag: int, source: Equation) -> None:
    if index not in source.indices or len(read.at) != len(source.at):
        return  # other rules report this
    position = read.at[source.indices.index(index)]
    if position == Index(index) or _lags(read, source) == [(index, lag)]:
        return
    other = f"{index} {'-' if lag < 0 else '+'} 1"
    raise KernelError(
        f"`{read.tensor}` is part of a recurrence over `{index}` and is read there at "
        f"`{expression_text(position)}`",
        place=read.place,
        allowed=f"`{index}`, `{other}`",
        hint="read other steps in an equation that the recurrence does not need",
    )
