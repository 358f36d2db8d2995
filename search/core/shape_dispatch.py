"""Shape dispatch: chooses the few kernels of a run that share the shapes of its workload.

The fallback is the best kernel over all shapes. Further kernels, up to a limit, are those that
minimise the weighted geometric mean of the times. Each further kernel must save at least WORTH of
the mean time, and is used at a shape only if it saves WORTH there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ir.guards import FALLBACK, WITHIN, Guard
from search.core import quantity
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, at, same_kind
from search.core.graph import Graph
from search.core.settings import Settings
from search.core.workload import WeightedShape, mean

WORTH = 0.005  # share of the time that a further kernel must save, in the mean and at a shape
# up to so many sets of kernels are all tried; beyond, kernels are added one by one
MOST_TRIED = 50_000

Times = tuple[float, ...]  # times of a kernel at each shape in microseconds; infinite if it fails


@dataclass(frozen=True, slots=True)
class SharedKernel:
    """One kernel of a dispatch."""

    candidate: Candidate
    times: tuple[float | None, ...]  # at each shape of the workload; None if it does not fit


@dataclass(frozen=True, slots=True)
class ShapeDispatch:
    """The kernels that share a workload. Mean times are weighted geometric means in
    microseconds."""

    shapes: tuple[WeightedShape, ...]
    # the fallback is the first; `guards` refer to these by number
    kernels: tuple[SharedKernel, ...]
    chosen: tuple[int, ...]  # the number of the kernel for each shape

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards, which choose a kernel for any other shape."""
        return tuple(Guard(s.sizes, n) for s, n in zip(self.shapes, self.chosen, strict=True))

    @property
    def times(self) -> Times:
        """The time at each shape, of the kernel chosen there."""
        found = [self.kernels[kernel].times[n] for n, kernel in enumerate(self.chosen)]
        return tuple(us for us in found if us is not None)

    @property
    def us(self) -> float:
        """The weighted geometric mean over the shapes, in microseconds."""
        return mean(self.times, self.shapes)

    @property
    def single_us(self) -> float:
        """The weighted geometric mean of the fallback alone, in microseconds."""
        return mean([us for us in self.kernels[FALLBACK].times if us is not None], self.shapes)


def shape_dispatch(
    settings: Settings, best: Candidate, graph: Graph, outcomes: Mapping[str, Evaluated]
) -> ShapeDispatch:
    """Chooses the kernels that share the shapes of a run, at most `settings.dispatch` of them.

    best: the fallback, which is correct at all shapes. The others are of its backend, because a
    record has one backend. outcomes: of all candidates, by key.
    """
    shapes = settings.shapes
    outcomes = {k: o for k, o in outcomes.items() if graph.node(k).backend == best.backend}
    known = {key: _times(outcome, shapes) for key, outcome in outcomes.items()}
    _require_one_kind(outcomes, shapes)
    single = known[best.key]
    assert all(map(math.isfinite, single)), "the fallback lacks a shape"
    taken = _taken(_useful(known, single), single, shapes, settings.dispatch - 1)
    chosen = [_fastest((single, *(known[key] for key in taken)), n) for n in range(len(shapes))]
    used = [n for n in range(len(taken) + 1) if n == FALLBACK or n in chosen]
    keys = [best.key, *taken]
    return ShapeDispatch(
        shapes=shapes,
        kernels=tuple(
            SharedKernel(graph.node(keys[n]), tuple(_known(us) for us in known[keys[n]]))
            for n in used
        ),
        chosen=tuple(used.index(n) for n in chosen),
    )


def _times(outcome: Evaluated, shapes: Sequence[WeightedShape]) -> Times:
    found = (at(outcome, shape.sizes) for shape in shapes)
    return tuple(one.us if one else math.inf for one in found)


def _known(us: float) -> float | None:
    return us if math.isfinite(us) else None


def _require_one_kind(outcomes: Mapping[str, Evaluated], shapes: Sequence[WeightedShape]) -> None:
    kinds = [one.time_kind for o in outcomes.values() for s in shapes if (one := at(o, s.sizes))]
    for kind in kinds[1:]:
        same_kind(kind, kinds[0])


def _useful(known: Mapping[str, Times], single: Times) -> dict[str, Times]:
    """The best times of each candidate combined with the fallback.

    Candidates that another one equals or beats at every shape are left out; of equals the first
    stays.
    """
    found: dict[str, Times] = {}
    for key, times in known.items():
        new = _with(single, times)
        if new == single or any(_as_good(old, new) for old in found.values()):
            continue
        found = {k: old for k, old in found.items() if not _as_good(new, old)}
        found[key] = new
    return found


def _as_good(one: Times, other: Times) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _with(times: Times, more: Times) -> Times:
    return tuple(map(min, times, more))


def _taken(
    useful: Mapping[str, Times], single: Times, shapes: Sequence[WeightedShape], most: int
) -> tuple[str, ...]:
    """The kernels besides the fallback: at most `most`, and only those that are worth it."""
    best: list[tuple[float, tuple[str, ...]]] = [(mean(single, shapes), ())]
    for count in range(1, min(most, len(useful)) + 1):
        if math.comb(len(useful), count) <= MOST_TRIED:
            tried: Iterator[tuple[str, ...]] = combinations(useful, count)
        else:
            tried = ((*best[-1][1], key) for key in useful if key not in best[-1][1])
        best.append(
            min(
                ((_mean(keys, useful, single, shapes), keys) for keys in tried),
                key=lambda each: each[0],
            )
        )
    least = min(us for us, _ in best)
    return next(keys for us, keys in best if us <= least * (1 + WORTH))


def _mean(
    keys: tuple[str, ...],
    useful: Mapping[str, Times],
    single: Times,
    shapes: Sequence[WeightedShape],
) -> float:
    times = single
    for key in keys:
        times = _with(times, useful[key])
    return mean(times, shapes)


def _fastest(kernels: Sequence[Times], shape: int) -> int:
    """The number of the fastest kernel at a shape; the fallback if no other is worth it."""
    best = min(range(len(kernels)), key=lambda n: kernels[n][shape])
    worth = kernels[best][shape] * (1 + WORTH) < kernels[FALLBACK][shape]
    return best if worth else FALLBACK


def guard_lines(found: ShapeDispatch | None) -> tuple[str, ...]:
    """Lines for a person: each guard, the fallback, and the times of the kernels."""
    if found is None:
        return ()
    count, gain = len(found.kernels), quantity.ratio(found.single_us, found.us)
    kernels = f"{count} kernels share" if count > 1 else "1 kernel has"
    return (
        *(
            f"nearest to {quantity.shape(guard.near)}: kernel {guard.kernel}"
            for guard in found.guards
            if guard.kernel != FALLBACK
        ),
        f"elsewhere, {WITHIN:g} times away in a size, and where another does not fit: kernel 0",
        f"{kernels} the shapes: {quantity.time(found.us)} in the mean, {quantity.factor(gain)} "
        f"over the best alone ({quantity.time(found.single_us)})",
    )
