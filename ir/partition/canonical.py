"""Renames a group of equations canonically, so that equal groups become equal specs.

Names of the spec, its tensors and its indices depend on the equations alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count

from ir.digest import spec_digest
from ir.errors import KernelError
from ir.parse.expression import RESERVED
from ir.partition.groups import Group
from ir.partition.merged import merged
from ir.partition.padded import with_padded_starts
from ir.partition.unrounded import unrounded
from ir.spec import Equation, Expr, Facts, Index, Number, Range, Reduce, Spec
from ir.verify import facts
from ir.visit import reindexed, rereading

_LETTERS = "ijklmnpqrstuvwbcdfgh"


def canonical(known: Facts, group: Group, inputs: Sequence[str], stored: Sequence[str]) -> Spec:
    """The canonical spec of a group.

    inputs, stored: the tensors that the kernel reads and writes, in the order of its arguments.
    """
    tensors = {name: f"x{n}" if len(inputs) > 1 else "x" for n, name in enumerate(inputs)}
    for e in group.equations:
        tensors[e.target] = _fresh(stem(e.target), tensors.values())
    taken = {*tensors.values(), *RESERVED}
    names = _lettered(group.equations, taken)
    ranges = {i: Range(i, Number(0), size) for i, size in group.ranges.items()}
    given = tuple(replace(known.tensors[name], name=tensors[name], place=None) for name in inputs)
    made = tuple(
        replace(known.tensors[name], name=tensors[name], place=None, range=()) for name in stored
    )
    equations = tuple(_spelled(e, names, tensors, known, ranges) for e in group.equations)
    title = "_".join(dict.fromkeys(stem(e.target) for e in group.equations if e.target in stored))
    spec = merged(Spec("kernel", "kernel", given, made, equations))
    spec = with_padded_starts(unrounded(spec))
    names = _lettered(spec.equations, taken)
    spec = replace(spec, equations=tuple(_reindexed(e, names) for e in spec.equations))
    spec = without_sizes(spec)
    return named(spec, title)


def named(spec: Spec, title: str) -> Spec:
    """Names a spec by a title and a digest of its equations."""
    bare = replace(spec, name="kernel", doc="kernel")
    return replace(spec, name=f"{title[:40]}_{spec_digest(bare)[:8]}", doc=f"{title}.")


def without_sizes(spec: Spec) -> Spec:
    """Drops the sizes and ranges that can be inferred from the rest of the spec."""
    bare = replace(
        spec,
        equations=tuple(
            replace(
                e,
                sizes=(),
                value=_unranged(e.value) if isinstance(e.value, Reduce) else e.value,
            )
            for e in spec.equations
        ),
    )
    try:
        return bare if facts(bare).ranges == facts(spec).ranges else spec
    except KernelError:
        return spec


def _unranged(value: Reduce) -> Reduce:
    """Keeps the ranges of a reduction that cover only part of their index's range."""
    return replace(value, ranges=tuple(r for r in value.ranges if r.partial))


def _lettered(equations: Sequence[Equation], taken: Collection[str]) -> dict[str, str]:
    """Maps indices to letters in order of first use, skipping names that are taken."""
    names: dict[str, str] = {}
    letters = (name for name in map(_letter, count()) if name not in taken)
    for e in equations:
        for node in (n for p in (*e.at, e.value) for n in p.walk()):
            for index in _indices(node):
                if index not in names:
                    names[index] = next(letters)
    return names


def _reindexed(e: Equation, names: Mapping[str, str]) -> Equation:
    def named(expr: Expr) -> Expr:
        return reindexed(expr, names.__getitem__)

    return replace(e, at=tuple(map(named, e.at)), value=named(e.value))


def _indices(node: Expr) -> tuple[str, ...]:
    match node:
        case Index(name) | Range(name):
            return (name,)
        case Reduce(_, _, over):
            return over
    return ()


def stem(name: str) -> str:
    """A tensor's name without its trailing number."""
    return name.rstrip("0123456789").rstrip("_") or "t"


def _fresh(stem: str, taken: Collection[str]) -> str:
    name, n = stem, 0
    while name in taken or name in RESERVED:
        n += 1
        name = f"{stem}_{n}"
    return name


def _letter(n: int) -> str:
    turn, at = divmod(n, len(_LETTERS))
    return f"{_LETTERS[at]}{turn or ''}"


def _spelled(
    e: Equation,
    indices: Mapping[str, str],
    tensors: Mapping[str, str],
    known: Facts,
    ranges: Mapping[str, Range],
) -> Equation:
    def spelled(expr: Expr) -> Expr:
        return reindexed(rereading(expr, tensors), indices.__getitem__)

    value = spelled(e.value)
    if isinstance(value, Reduce):
        written = {r.index: r for r in value.ranges}
        spans = (
            written.get(indices[i]) or replace(ranges[i], index=indices[i]) for i in e.reduce.over
        )
        value = replace(value, ranges=tuple(spans))
    sizes = known.tensors[e.target].shape
    return replace(
        e,
        target=tensors[e.target],
        at=tuple(map(spelled, e.at)),
        value=value,
        sizes=sizes,
        place=None,
    )
