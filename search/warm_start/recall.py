"""Recall: finds results of earlier runs in a store for the same operation, as seeds.

The name of a network's kernel has its outputs and a digest of its equations with their sizes. So
the same operation with other sizes is another kernel, which is found by its structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ir.errors import KernelError
from ir.partition.unify import unified
from ir.workload import Sizes
from search.core.evaluation import Evaluation
from search.core.lowered import schedule_of, schedule_text, spec_of
from search.core.settings import Settings
from search.core.stored import Keeper, StoredRun
from search.core.transferred import Transferred

RUNS = 24  # latest runs of the kernel, and of similar kernels, that are read
MOST = 3  # largest number of elites that a search starts from


@dataclass(frozen=True, slots=True)
class _Found:
    transferred: Transferred
    distance: tuple[bool, int, float, int]


def recalled(
    store: Keeper,
    settings: Settings,
    backends: Callable[[str], Collection[str]],
    most: int = MOST,
) -> tuple[Transferred, ...]:
    """The elites of earlier runs of the kernel with the same name, the best match first; then those
    of kernels with the same structure and other sizes.

    The order is: the same target, a target that shares a backend, any target; then the smallest
    distance of the logarithms of sizes; then the latest run. backends: of a target, by name.
    """
    found = _alike(store, settings, backends)
    for age, run in enumerate(store.runs_of(settings.kernel)[:RUNS]):
        record = store.load(run)
        transferred = elite(record)
        if transferred is None:
            continue
        apart = _apart(settings.sizes, record.settings.sizes)
        machines = _machines(settings, transferred, backends)
        found.append(_Found(transferred, (False, machines, apart, age)))
    found.sort(key=lambda f: f.distance)
    distinct = {f.transferred.schedule: f.transferred for f in reversed(found)}
    return tuple(f.transferred for f in found if distinct[f.transferred.schedule] is f.transferred)[
        :most
    ]


def _alike(
    store: Keeper, settings: Settings, backends: Callable[[str], Collection[str]]
) -> list[_Found]:
    """Results for kernels whose specs differ in sizes only, by schedules for their own equations,
    as schedules for this spec."""
    runs = store.runs_alike(settings.kernel)[:RUNS]
    if not runs:
        return []
    spec, found = spec_of(settings.spec), []
    for age, run in enumerate(runs):
        record = store.load(run)
        other, transferred = record.settings.spec, elite(record)
        if transferred is None or transferred.edited or transferred.variant != other:
            continue
        try:
            both = unified((spec, spec_of(other)))
            schedule = replace(schedule_of(transferred.schedule), kernel=spec.name)
        except KernelError:
            continue  # by an earlier version
        if both is None:
            continue
        moved = replace(transferred, variant=settings.spec, schedule=schedule_text(schedule))
        machines = _machines(settings, transferred, backends)
        found.append(_Found(moved, (True, machines, _apart(*both.sizes), age)))
    return found


def elite(record: StoredRun) -> Transferred | None:
    """The fastest candidate of a run; None if none was correct."""
    best = None
    for generation in record.generations:
        for candidate in generation:
            outcome = record.outcomes.get(candidate.key)
            if isinstance(outcome, Evaluation) and (best is None or outcome.us < best[1].us):
                best = candidate, outcome
    if best is None:
        return None
    candidate, outcome = best
    return Transferred(
        target=candidate.target,
        backend=candidate.backend,
        variant=candidate.variant,
        schedule=candidate.schedule,
        us=outcome.us,
        time_kind=outcome.time_kind,
        run=record.run,
        source=candidate.source or "",
        edited=candidate.source is not None,
    )


def _machines(
    settings: Settings, found: Transferred, backends: Callable[[str], Collection[str]]
) -> int:
    """0: the same target; 1: a target that shares a backend; 2: any other."""
    if found.target == settings.target:
        return 0
    try:
        shared = set(backends(found.target)) & set(backends(settings.target))
    except KernelError:  # a user's own target, which has only a file
        shared = {found.backend} & set(settings.backends)
    return 1 if shared else 2


def _apart(sizes: Sizes, others: Sizes) -> float:
    """The number of doublings between two shapes, over all sizes."""
    if set(sizes) != set(others):
        return math.inf
    return sum(abs(math.log2(sizes[name] / others[name])) for name in sizes)
