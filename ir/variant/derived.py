"""Derived tensors and indices: the names that decisions add, and decisions on them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ir.errors import KernelError
from ir.schedule import Argument, Decision, Schedule
from ir.spec import Spec
from ir.verify import facts

LARGEST_INHERITED = 256  # largest tile that a flattened index inherits from its two indices
# Verbs that apply before a tensor is replaced; their subjects are tensors of the given equations.
ON_GIVEN = ("hoist", "associate")
TRIPLE = "tf32x3"  # precision of a 3xTF32 contraction


def copy_of(decision: Decision) -> str:
    """The packed copy that a `pack` of an input makes: `w` in the order `n_k` gives `w_nk`."""
    return f"{decision.subject}_{str(decision.option('order')).replace('_', '')}"


def parts_of(decision: Decision) -> str:
    """The tensor of partial results that a `split_k` makes."""
    return f"{decision.subject}_parts"


def part_of(decision: Decision) -> str:
    """The index over the parts of a `split_k`."""
    return f"{decision.subject}_s"


def flattened(decision: Decision) -> str:
    """The index that a `flatten` makes of two."""
    return f"{decision.subject}{decision.option('inner')}"


def stands_for(schedule: Schedule, index: str) -> str:
    """The index whose decisions apply to an index without its own.

    For an index of a packed copy this is the index at which the tensor is read, else the index
    itself.
    """
    for d in schedule.of("pack"):
        own = f"{copy_of(d)}_"
        if index.startswith(own):
            return index.removeprefix(own)
    return index


def counts_parts(schedule: Schedule, index: str) -> bool:
    """Whether an index counts the parts of a split."""
    return any(index == part_of(d) for d in schedule.of("split_k"))


def owner(schedule: Schedule, target: str) -> str:
    """The tensor under whose name decisions on `target` are written: the whole for the parts of a
    split."""
    split = (d.subject for d in schedule.of("split_k") if parts_of(d) == target)
    return next(split, target)


def names(decision: Decision | None) -> frozenset[str]:
    """The names of the tensors and indices that exist only because of a decision."""
    if decision is None:
        return frozenset()
    subject = decision.subject
    if decision.verb == "pack":
        return frozenset({copy_of(decision)})
    if decision.verb == "associate":
        return frozenset({f"{subject}_again"})
    if decision.verb == "flatten":
        return frozenset({flattened(decision)})
    if decision.verb == "split_k":
        return frozenset({parts_of(decision), part_of(decision)})
    if decision.verb == "precision" and decision.option("dtype") == TRIPLE:
        return frozenset(f"{subject}_{part}" for part in ("ah", "al", "bh", "bl"))
    return frozenset()


def replaced(decision: Decision | None) -> frozenset[str]:
    """The names of the given tensors that no longer exist because of a decision."""
    if decision is not None and decision.verb == "associate":
        return frozenset({decision.subject})
    return frozenset()


def after(schedule: Schedule, old: Decision | None, new: Decision | None) -> Schedule:
    """The schedule after its decision `old` became `new`.

    Decisions on names that no longer exist are dropped. Decisions on two flattened indices apply to
    the flattened index. The unit that computes a reassociated contraction computes the one that
    replaces it.
    """
    if new is not None and new.verb == "flatten" and old != new:
        schedule = _inherited(schedule, new)
    if new is not None and new.verb == "associate" and old != new:
        schedule = _replacing(schedule, new)
    gone = (names(old) - names(new)) | (replaced(new) - replaced(old))
    return _without(schedule, gone)


def _inherited(schedule: Schedule, flatten: Decision) -> Schedule:
    pair, one = (flatten.subject, str(flatten.option("inner"))), flattened(flatten)
    tiles = [t for i in pair if (t := schedule.find("tile", i))]
    # The flattened tile has as many elements as the two tiles together, up to a limit.
    size = prod(t.number("size", 1) for t in tiles)
    made: dict[tuple[str, str], Decision] = {}
    for d in schedule.decisions:
        subject, *rest = d.subject.split(".")
        if d.verb in ("tile", "place") and subject in pair:
            d = replace(d, subject=".".join((one, *rest)))
            if d.verb == "tile":
                d = replace(d, options=(("size", min(size, LARGEST_INHERITED)),))
        if (d.verb, d.subject) not in made:
            made[d.verb, d.subject] = d
    return Schedule(schedule.kernel, tuple(made.values()))


def _replacing(schedule: Schedule, associate: Decision) -> Schedule:
    (name,) = names(associate)
    made = (
        replace(d, subject=name) if (d.verb, d.subject) == ("compute", associate.subject) else d
        for d in schedule.decisions
    )
    return Schedule(schedule.kernel, tuple(made))


def _without(schedule: Schedule, gone: frozenset[str]) -> Schedule:
    """Drops the decisions on names that no longer exist, except those on given tensors."""
    kept = (
        d
        for d in schedule.decisions
        if d.verb in ON_GIVEN
        or d.subject.removesuffix(".outer") not in gone
        and d.option("into") not in gone
    )
    return Schedule(schedule.kernel, tuple(kept))


def ends(schedule: Schedule) -> tuple[str, ...]:
    """The derived tensors that end a launch where they exist: packed copies and the parts of
    splits."""
    copies = (copy_of(d) for d in schedule.of("pack"))
    return (*copies, *(parts_of(d) for d in schedule.of("split_k")))


def needed(decision: Decision, name: str) -> Argument:
    """An option that a decision must have. Raises KernelError if it is missing."""
    found = decision.option(name)
    if found is None:
        raise KernelError(
            f"`{decision.verb}` needs `{name}=`",
            place=decision.place,
            hint=f"{decision.verb}({decision.subject}, {name}=...)",
        )
    return found


def require_free(spec: Spec, names: tuple[str, ...], decision: Decision) -> None:
    """Raises KernelError if a tensor, an index or an attribute of the spec already has one of the
    names."""
    known = facts(spec)
    attributes = {name for name, _ in spec.attributes}
    for name in names:
        if name in known.tensors or name in known.ranges or name in attributes:
            raise KernelError(
                f"`{decision}` would make a second `{name}`",
                place=decision.place,
                hint="rename that one in the spec",
            )
