"""Recall: what earlier runs in a store found for the same operation, to start a search from."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ir.errors import KernelError
from ir.workload import Sizes
from search.core.evaluation import Evaluation
from search.core.settings import Settings
from search.core.stored import Keeper, StoredRun
from search.core.transferred import Transferred

RUNS = 24  # the latest of a kernel that are looked at
MOST = 3  # elites that a search starts from


@dataclass(frozen=True, slots=True)
class _Found:
    transferred: Transferred
    distance: tuple[int, float, int]


def recalled(
    store: Keeper,
    settings: Settings,
    backends: Callable[[str], Collection[str]],
    most: int = MOST,
) -> tuple[Transferred, ...]:
    """The elites of earlier runs of the kernel of the same name, the likeliest first.

    Likelier is what was found for the same target, then for one that shares a backend with it,
    then for any; among these, at sizes nearer in their logarithms; then the later run. backends:
    of a target, by name.
    """
    found = []
    for age, run in enumerate(store.runs_of(settings.kernel)[:RUNS]):
        record = store.load(run)
        transferred = elite(record)
        if transferred is None:
            continue
        apart = _apart(settings.sizes, record.settings.sizes)
        found.append(_Found(transferred, (_machines(settings, transferred, backends), apart, age)))
    found.sort(key=lambda f: f.distance)
    distinct = {f.transferred.schedule: f.transferred for f in reversed(found)}
    return tuple(f.transferred for f in found if distinct[f.transferred.schedule] is f.transferred)[
        :most
    ]


def elite(record: StoredRun) -> Transferred | None:
    """The fastest that a run found; None where nothing was correct."""
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
    """0: the same target, 1: one that shares a backend, 2: any."""
    if found.target == settings.target:
        return 0
    try:
        shared = set(backends(found.target)) & set(backends(settings.target))
    except KernelError:  # a user's own target, of which only the file knows
        shared = {found.backend} & set(settings.backends)
    return 1 if shared else 2


def _apart(sizes: Sizes, others: Sizes) -> float:
    """How many doublings lie between two shapes, over all sizes."""
    if set(sizes) != set(others):
        return math.inf
    return sum(abs(math.log2(sizes[name] / others[name])) for name in sizes)
