"""Sampled rows of a spec that is too large to evaluate whole, and what its equations need for them.

A row is a position of an output's first axis. An intermediate is evaluated at the same rows where
every equation that reads it does so row by row; otherwise it is evaluated whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ir.recurrence import ordered, stepped
from ir.sizes import bind, shape, value
from ir.spec import Bucketize, Equation, Index, Range, Read, Reduce, Scan, Spec
from ir.verify import facts

AFFORDABLE_WORK = 1 << 31  # iterations of all equations: about a second for a reference
AFFORDABLE_ENTRIES = 1 << 23  # elements of inputs and outputs, each of which takes 80 bytes
RUNS = 6  # runs of adjacent rows: the first, the last, and random ones between
RUN_ROWS = 3  # rows in each, fewer where there are few rows
FEW = 24  # a run is at most 1/FEW of the rows

Runs = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows to evaluate; a tensor that is not listed is evaluated whole."""

    tensors: Mapping[str, Runs]  # by tensor: the runs of its first axis, ascending and disjoint
    outputs: Mapping[str, np.ndarray]  # by output: the positions of its rows


WHOLE = Rows({}, {})


def rows(spec: Spec, sizes: Mapping[str, int], seed: int) -> Rows:
    """The rows at which to evaluate a spec: WHOLE where all of it is affordable."""
    if _affordable(spec, sizes):
        return WHOLE
    bound, known = bind(spec, sizes), facts(spec).tensors
    draw = np.random.default_rng(seed)
    lengths = {t.name: shape(t, bound)[:1] for t in spec.outputs}
    runs = {n: _runs(n, draw) for (n,) in sorted({one for one in lengths.values() if one})}
    needed = _needed(spec, {name: runs[n] for name, one in lengths.items() for n in one})
    tensors = {n: r for n, r in needed.items() if r is not None and n in known}
    computed = {t.name for t in spec.outputs} & set(tensors)
    outputs = {
        n: np.concatenate([np.arange(s.start, s.stop) for s in tensors[n]]) for n in computed
    }
    return Rows(tensors, outputs)


def sampled_work(spec: Spec, sizes: Mapping[str, int], seed: int) -> int:
    """Iterations of all equations at the rows that `rows` gives."""
    bound, some = bind(spec, sizes), rows(spec, sizes, seed)
    total = 0
    for e in spec.equations:
        work = iterations(spec, e, bound)
        runs = some.tensors.get(e.target)
        if runs is not None:
            length = shape(facts(spec).tensors[e.target], bound)[0]
            work = work * sum(run.stop - run.start for run in runs) // max(1, length)
        total += work
    return total


def _affordable(spec: Spec, sizes: Mapping[str, int]) -> bool:
    bound = bind(spec, sizes)
    entries = sum(math.prod(shape(t, bound)) for t in (*spec.inputs, *spec.outputs))
    work = sum(iterations(spec, e, bound) for e in spec.equations)
    return work <= AFFORDABLE_WORK and entries <= AFFORDABLE_ENTRIES


def iterations(spec: Spec, e: Equation, sizes: Mapping[str, int]) -> int:
    """Iterations of an equation; a data-dependent range counts once."""
    left = (n.name for x in e.at for n in x.walk() if isinstance(n, Index))
    found = facts(spec).ranges
    ranges = [found[i] for i in dict.fromkeys((*left, *e.reduced))]
    return math.prod(1 if r.jagged or r.partial else value(r.high, sizes) for r in ranges)


def _runs(length: int, draw: np.random.Generator) -> Runs:
    """Random runs of rows; one that overlaps the run before it is left out."""
    count = max(1, min(RUN_ROWS, length // FEW))
    last = length - count
    starts = {0, last, *(int(n) for n in draw.integers(0, last + 1, RUNS - 2))}
    found: list[slice] = []
    for start in sorted(starts):
        if not found or start >= found[-1].stop:
            found.append(slice(start, start + count))
    return tuple(found)


def _needed(spec: Spec, outputs: Mapping[str, Runs]) -> dict[str, Runs | None]:
    """By tensor: the runs that are needed, None for all of it. Equations are visited consumers
    first."""
    needed: dict[str, Runs | None] = {t.name: outputs.get(t.name) for t in spec.outputs}
    times = Counter(e.target for e in spec.equations)
    for e in reversed(ordered(spec)):
        runs = needed.get(e.target)
        by_row = runs is not None and times[e.target] == 1 and _row_by_row(spec, e)
        needed[e.target] = runs if by_row else None
        for tensor, same in _reads(e):
            wanted = runs if by_row and same else None
            needed[tensor] = wanted if needed.get(tensor, wanted) == wanted else None
    for t in spec.inputs:
        needed[t.name] = None
    return needed


def _row_by_row(spec: Spec, e: Equation) -> bool:
    """Whether an equation can be evaluated at single values of its first index."""
    nodes = list(e.value.walk())
    if e.accumulate or not e.at or stepped(spec, e.target) is not None:
        return False
    if any(isinstance(n, Range) and (n.jagged or n.partial) for n in nodes):
        return False
    bound = e.value.over if isinstance(e.value, Reduce) else ()
    along = (e.value.along,) if isinstance(e.value, Scan) else ()
    first = e.at[0]
    return isinstance(first, Index) and first.name not in (*bound, *along)


def _reads(e: Equation) -> list[tuple[str, bool]]:
    """The tensors that an equation reads, each with whether the read is at the equation's own
    row."""
    found = []
    for node in (*e.value.walk(), *(n for x in e.at for n in x.walk())):
        if isinstance(node, Read):
            found.append((node.tensor, bool(e.at) and node.at[:1] == e.at[:1]))
        elif isinstance(node, Bucketize):
            found.append((node.borders, False))
    return found
