"""Samples rows of a spec that is too large to evaluate whole, with all that its equations need.

Rows are positions of an output's first axis. If a reference at these is still too much work, other
axes are sampled, too. A tensor is held at the same rows if every equation that reads it does so row
by row; otherwise it is held whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ir.recurrence import ordered, stepped
from ir.reference.product_sum import factors
from ir.sizes import bind, shape, value
from ir.spec import Bucketize, Equation, Expr, Index, Range, Read, Reduce, Scan, Spec
from ir.verify import facts

AFFORDABLE_WORK = 1 << 31  # iterations of all equations: about a second for a reference
AFFORDABLE_ENTRIES = 1 << 23  # elements of inputs and outputs, each of which takes 80 bytes
# Number of runs of adjacent rows: the first, the last, and random ones between; and rows per run,
# fewer if there are few rows.
FIRST = (6, 3)
FEW = 24  # a run is at most 1/FEW of the rows
# Iterations of all equations at sampled rows, above which another axis is sampled. The draws of a
# check take a few dozen evaluations.
SAMPLED_WORK = 1 << 28
OTHERS = (4, 8)  # runs of an axis other than the first, and rows per run
# For normal inputs there are more runs of the first axis, up to this number of iterations of all
# equations. More runs raise the chance to detect a kernel that leaves out some rows. MATMUL
# iterations of a sum of products (a matmul) count as one.
MORE_WORK = 1 << 23
MOST_RUNS = 96
MOST_SHARE = 24  # rows per run, at least: an eighth of all is compared
MATMUL = 64

Runs = tuple[slice, ...]
Places = Mapping[int, np.ndarray]  # by axis: ascending positions


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows to evaluate; a tensor that is not listed is held whole."""

    tensors: Mapping[str, Mapping[int, Runs]]  # by tensor and axis: ascending and disjoint
    outputs: Mapping[str, Places]  # the same as positions, by output

    def taken(self, name: str, output: np.ndarray) -> np.ndarray:
        """The rows of an output."""
        for axis, at in self.outputs.get(name, {}).items():
            output = output.take(at, axis)
        return output


WHOLE = Rows({}, {})


def rows(
    spec: Spec, sizes: Mapping[str, int], seed: int, share: int = 1, more: bool = False
) -> Rows:
    """The rows at which to evaluate a spec; WHOLE if all of it is affordable.

    share: the number of evaluations, which together must be affordable.
    more: as many rows as MORE_WORK allows.
    """
    if _affordable(spec, sizes, share):
        return WHOLE
    bound, draw = bind(spec, sizes), np.random.default_rng(seed)
    shapes = {t.name: shape(t, bound) for t in spec.outputs}
    axes = sorted({(axis, n) for s in shapes.values() for axis, n in enumerate(s)})
    runs = {one: _runs(one[1], *FIRST, draw) for one in axes if one[0] == 0}
    others = {one: _runs(one[1], *OTHERS, draw) for one in axes if one[0]}
    needed = _needed(spec, shapes, runs)
    work = _work(spec, bound, needed)
    while work * share > SAMPLED_WORK and others:
        found = {one: _needed(spec, shapes, {**runs, one: others[one]}) for one in others}
        least, best = min((_work(spec, bound, f), one) for one, f in found.items())
        if least == work:
            break
        runs[best], needed, work = others.pop(best), found[best], least
    count = FIRST[0]
    while more and count < MOST_RUNS:
        count = min(MOST_RUNS, 2 * count)
        for axis, n in (one for one in runs if one[0] == 0):
            runs[axis, n] = _runs(n, max(FIRST[0], min(count, n // MOST_SHARE)), FIRST[1], draw)
        wider = _needed(spec, shapes, runs)
        if wider == needed or _work(spec, bound, wider, MATMUL) > MORE_WORK:
            break
        needed = wider
    outputs = {n: {axis: _places(r) for axis, r in needed[n].items()} for n in shapes if needed[n]}
    return Rows({name: some for name, some in needed.items() if some}, outputs)


def sampled_work(spec: Spec, sizes: Mapping[str, int], seed: int, share: int = 1) -> int:
    """Iterations of all equations at the rows that `rows` gives."""
    return _work(spec, bind(spec, sizes), rows(spec, sizes, seed, share).tensors)


def _work(
    spec: Spec,
    sizes: Mapping[str, int],
    needed: Mapping[str, Mapping[int, Runs]],
    matmul: int = 1,
) -> int:
    """Iterations of all equations.

    sizes: bound.
    needed: the rows of tensors.
    matmul: how many iterations of a sum of products count as one.
    """
    total = 0
    for e in spec.equations:
        work = iterations(spec, e, sizes)
        if isinstance(e.value, Reduce) and len(factors(e.value.body)) > 1:
            work //= matmul
        lengths = shape(facts(spec).tensors[e.target], sizes)
        for axis, runs in needed.get(e.target, {}).items():
            work = work * sum(run.stop - run.start for run in runs) // max(1, lengths[axis])
        total += work
    return total


def _affordable(spec: Spec, sizes: Mapping[str, int], share: int) -> bool:
    bound = bind(spec, sizes)
    entries = sum(math.prod(shape(t, bound)) for t in (*spec.inputs, *spec.outputs))
    work = sum(iterations(spec, e, bound) for e in spec.equations)
    return work * share <= AFFORDABLE_WORK and entries * share <= AFFORDABLE_ENTRIES


def iterations(spec: Spec, e: Equation, sizes: Mapping[str, int]) -> int:
    """Iterations of an equation; a data-dependent range counts once."""
    left = (n.name for x in e.at for n in x.walk() if isinstance(n, Index))
    found = facts(spec).ranges
    ranges = [found[i] for i in dict.fromkeys((*left, *e.reduced))]
    return math.prod(1 if r.jagged or r.partial else value(r.high, sizes) for r in ranges)


def _runs(length: int, runs: int, most: int, draw: np.random.Generator) -> Runs:
    """Random runs of at most `most` rows each, and the runs at both ends.

    A run that overlaps another one is left out.
    """
    count = max(1, min(most, length // FEW))
    last = length - count
    starts = {0, last, *(int(n) for n in draw.integers(0, last + 1, runs - 2))}
    found: list[slice] = []
    for start in sorted(starts):
        if start in (0, last) or found[-1].stop <= start <= last - count:
            found.append(slice(start, start + count))
    return tuple(found)


def _places(runs: Runs) -> np.ndarray:
    return np.concatenate([np.arange(run.start, run.stop) for run in runs])


def _needed(
    spec: Spec,
    shapes: Mapping[str, Sequence[int]],
    runs: Mapping[tuple[int, int], Runs],
) -> dict[str, dict[int, Runs]]:
    """By tensor: the runs that are needed by axis; an axis without runs is needed whole.

    Equations are visited consumers first.

    shapes: of the outputs.
    runs: of their axes, by axis and length.
    """
    needed = {
        name: {axis: runs[axis, n] for axis, n in enumerate(one) if (axis, n) in runs}
        for name, one in shapes.items()
    }
    times = Counter(e.target for e in spec.equations)
    for e in reversed(ordered(spec)):
        wanted = needed.get(e.target, {})
        free = _free(spec, e) if times[e.target] == 1 else ()
        kept = {axis: r for axis, r in wanted.items() if _name(e.at[axis]) in free}
        needed[e.target] = kept
        by_index = {_name(e.at[axis]): r for axis, r in kept.items()}
        for tensor, at in _reads(e):
            named = [(axis, _name(x)) for axis, x in enumerate(at)]
            here = {axis: by_index[name] for axis, name in named if name in by_index}
            before = needed.get(tensor, here)
            needed[tensor] = {a: r for a, r in before.items() if here.get(a) == r}
    return needed


def _free(spec: Spec, e: Equation) -> tuple[str, ...]:
    """The indices at single values of which an equation can be evaluated."""
    nodes = list(e.value.walk())
    if e.accumulate or stepped(spec, e.target) is not None:
        return ()
    if any(isinstance(n, Range) and (n.jagged or n.partial) for n in nodes):
        return ()
    bound = e.value.over if isinstance(e.value, Reduce) else ()
    along = (e.value.along,) if isinstance(e.value, Scan) else ()
    return tuple(n for n in map(_name, e.at) if n and n not in (*bound, *along))


def _name(at: Expr) -> str:
    """The name of an index; empty for another expression."""
    return at.name if isinstance(at, Index) else ""


def _reads(e: Equation) -> list[tuple[str, tuple[Expr, ...]]]:
    """The tensors that an equation reads, each with its positions."""
    found: list[tuple[str, tuple[Expr, ...]]] = []
    for node in (*e.value.walk(), *(n for x in e.at for n in x.walk())):
        if isinstance(node, Read):
            found.append((node.tensor, node.at))
        elif isinstance(node, Bucketize):
            found.append((node.borders, ()))
    return found
