"""An attempt: one search of a kernel in a configuration, and its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import search
from backends.registry import backend_for, served_by, target
from benchmarks.search.configuration import configuration
from benchmarks.search.kernels import named
from benchmarks.search.modelled import UNCHECKED, TimeModel
from ir.digest import text_digest
from ir.print import spec_text
from search.core.evaluation import Evaluation, Failure
from search.core.events import Event, Told
from search.core.outcome import Outcome
from search.core.settings import Settings
from search.evaluator.cache import Cached
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Bench
from search.loop.run import Search
from search.policy import policy
from search.prompt.lesson import distil
from search.prompt.lessons import Folder, Lessons
from search.prompt.operations import operations
from search.store.store import Store
from search.warm_start.recall import recalled

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SearchAttempt:
    """One attempt, as plain data."""

    kernel: str
    configuration: str  # As text.
    seed: int
    evaluations: int
    target: str
    modelled: bool = False  # Uses only the time model.


@dataclass(frozen=True, slots=True)
class StorePaths:
    """Where attempts store and find what they learn."""

    store: str  # Holds runs and outcomes.
    # A store of earlier runs, and the folder of their lessons, for the configurations that use
    # them.
    memory: str = ""
    lessons: str = ""
    learn: str = ""  # A folder for the lessons of the attempts. Empty for none.
    # Whether each block, which is a kernel with a seed, has its own store next to the named one.
    # Searches that write to one file wait for each other.
    apart: bool = False

    def store_of(self, task: SearchAttempt) -> str:
        """Returns the store of an attempt."""
        if not self.apart:
            return self.store
        file = Path(self.store)
        return str(
            file.with_name(f"{file.stem}-{task.target}-{task.kernel}-{task.seed}{file.suffix}")
        )


class Desk:
    """Makes attempts one after another. It keeps the workers of the last kernel."""

    def __init__(self, places: StorePaths):
        self.places = places
        self._store: Store | None = None
        self._store_of = ""
        self._of = ("", "", False)
        self._local: LocalEvaluator | TimeModel | None = None

    def close(self) -> None:
        """Ends the workers and closes the store."""
        if self._local is not None:
            self._local.close()
        if self._store is not None:
            self._store.close()

    def attempt(self, task: SearchAttempt) -> Row:
        """Returns the row of a search. Raises KeyboardInterrupt if the user stopped it."""
        chosen = configuration(task.configuration)
        machine = target(task.target)
        settings = self._settings(task)
        for extra in chosen.extras:
            settings = self._taught(extra, settings)
        local, store = self._evaluator(task, settings), self._opened(task)
        running = Search(
            settings,
            Cached(local, store),
            store,
            machines=dict.fromkeys(
                settings.backends, served_by(machine, backend_for(machine, settings.backends[0]))
            ),
            policy=policy(chosen.policy),
            operators=chosen.operators(settings.preferences),
        )
        told: list[Told] = []
        outcome = running.run(partial(_note, told))
        if "interrupted" in outcome.stopped_because:
            raise KeyboardInterrupt
        if self.places.learn:
            (backend,) = settings.backends
            lesson = distil(outcome, backend, date.today().isoformat())
            Lessons(Folder(Path(self.places.learn))).add(lesson)
        made_by = {"context": local.contexts[settings.backends[0]], "sources": sources_digest()}
        row = {**known(task), **made_by, **figures(told, outcome)}
        return {**row, "correct_by": UNCHECKED} if task.modelled else row

    def _opened(self, task: SearchAttempt) -> Store:
        """Returns the store of an attempt. It closes the previous one if that is another."""
        of = self.places.store_of(task)
        if self._store is None or self._store_of != of:
            if self._store is not None:
                self._store.close()
            self._store, self._store_of = Store(of), of
        return self._store

    def _settings(self, task: SearchAttempt) -> Settings:
        workload = named(task.kernel)
        return Settings(
            kernel=task.kernel,
            spec=spec_text(workload.spec),
            target=task.target,
            backends=(backend_for(target(task.target)).manifest.name,),
            sizes=workload.timed_sizes,
            checks=workload.checks,
            evaluations=task.evaluations,
            roofline_share=None,  # Every attempt makes the same number of evaluations.
            policy=configuration(task.configuration).policy,
            seed=task.seed,
        )

    def _taught(self, extra: str, settings: Settings) -> Settings:
        """Returns the settings with the results of earlier runs, or their lessons."""
        if extra == "memory":
            earlier = Store(self.places.memory)
            found = recalled(earlier, settings, lambda name: target(name).backends)
            earlier.close()
            return replace(settings, transferred=tuple(found))
        lessons = Lessons(Folder(Path(self.places.lessons)))
        kinds = operations(named(settings.kernel).spec)
        liked = lessons.preferences(target(settings.target), kinds)
        return replace(settings, preferences=dict(liked))

    def _evaluator(self, task: SearchAttempt, settings: Settings) -> LocalEvaluator | TimeModel:
        of = (task.kernel, task.target, task.modelled)
        if self._local is None or self._of != of:
            if self._local is not None:
                self._local.close()
            self._of = of
            machine = target(task.target)
            if task.modelled:
                backend = backend_for(machine, settings.backends[0])
                self._local = TimeModel(backend, served_by(machine, backend), settings.sizes)
                return self._local
            bench = Bench(
                spec=settings.spec,
                machine=machine,
                open=partial(backend_for, machine, settings.backends[0]),
                sizes=settings.sizes,
                checks=settings.checks,
            )
            self._local = LocalEvaluator([bench], 1)
        return self._local


_desks: list[Desk] = []  # Those of this process: one, if it makes attempts for another process.


def sit_down(places: StorePaths) -> None:
    """Prepares this process for `at_desk`."""
    _desks.append(Desk(places))


def at_desk(task: SearchAttempt) -> Row:
    """Returns the row of a search, in a process that has called `sit_down`."""
    return _desks[-1].attempt(task)


@cache
def sources_digest() -> str:
    """Returns the digest of the sources that determine a search, except the outcome of a
    candidate."""
    root = Path(search.__file__).parent
    places = (root, *(root / room for room in ("policy", "operator", "store")))
    files = [f for p in places for f in sorted(p.glob("*.py")) if not f.name.endswith("_test.py")]
    return text_digest("\0".join(f.read_text(encoding="utf-8") for f in files))


def known(task: SearchAttempt) -> Row:
    """Returns the fields that identify the row of a task."""
    return {
        "kernel": task.kernel,
        "target": task.target,
        "configuration": task.configuration,
        "seed": task.seed,
        "evaluations": task.evaluations,
    }


def figures(told: list[Told], outcome: Outcome) -> Mapping[str, Any]:
    """Returns the results of a search.

    curve: each gain, as the number of evaluations up to it (from 1) and the time in us.
    operators: for each, the number of children that were evaluated, and how many were gains.
    why: the first reason, if no candidate was correct.
    """
    curve: list[tuple[int, float]] = []
    made: Counter[str] = Counter()
    gained: Counter[str] = Counter()
    for event in told:
        name = event.candidate.origin.operator
        made[name] += 1
        us = event.outcome.us if isinstance(event.outcome, Evaluation) else None
        if us is not None and (not curve or us < curve[-1][1]):
            curve.append((event.number + 1, us))
            gained[name] += 1
    found = outcome.evaluation
    failed = [e.outcome.reason for e in told if isinstance(e.outcome, Failure)]
    return {
        "correct": found is not None,
        "made": outcome.evaluations,
        "us": found.us if found else None,
        "time_kind": found.time_kind if found else None,
        "correct_by": found.correct_by if found else None,
        "first_us": outcome.first_us,
        "roofline_us": outcome.roofline_us,
        "curve": curve,
        "failures": dict(outcome.failures),
        **({"why": failed[0]} if failed and not found else {}),
        "operators": {name: [count, gained[name]] for name, count in sorted(made.items())},
        "stopped": outcome.stopped_because,
    }


def _note(told: list[Told], event: Event) -> None:
    if isinstance(event, Told):
        told.append(event)
