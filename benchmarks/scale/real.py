"""Real searches on this machine, traced: when each slot had a candidate, and the duration of
everything."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from backends.registry import backend_for, served_by, target
from backends.served import Served
from benchmarks.search.kernels import named
from ir.print import spec_text
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated
from search.core.events import Asked, Event, Told
from search.core.settings import Settings
from search.evaluator.cache import Cached
from search.evaluator.identity import SourceIdentity
from search.evaluator.local import LocalEvaluator
from search.evaluator.stages import Bench
from search.loop.run import Search
from search.operator import local_operators, study, usual
from search.policy import policy
from search.store.store import Store

REST = "rest"  # The time of a slot with a candidate that belongs to no stage.


@dataclass(frozen=True, slots=True)
class RealSearch:
    """The subject of a search."""

    target: str = "npu"
    kernel: str = "rmsnorm_matmul"
    sizes: tuple[tuple[str, int], ...] = (("M", 128), ("K", 128), ("N", 128))
    evaluations: int = 64
    seed: int = 3


@dataclass(slots=True)
class Trace:
    """The trace of a run, in seconds."""

    workers: int
    given: list[tuple[float, int]] = field(default_factory=list)  # Time and slot.
    # Time, slot, and the seconds of the stages.
    taken: list[tuple[float, int, dict[str, float]]] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)  # For each candidate that was proposed.
    told: list[float] = field(default_factory=list)  # For each outcome.
    first: int = 0  # Candidates of the first generation.

    def held(self) -> list[tuple[float, dict[str, float]]]:
        """Returns how long each candidate had its slot, with the stages, in the order of
        answers."""
        since: dict[int, float] = {}
        found = []
        notes: list[tuple[float, int, int, dict[str, float]]]
        notes = [(at, 0, slot, {}) for at, slot in self.given]
        notes += [(at, 1, slot, stages) for at, slot, stages in self.taken]
        for at, ended, slot, stages in sorted(notes, key=lambda note: (note[0], -note[1])):
            if ended:
                found.append((at - since.pop(slot), stages))
            else:
                since[slot] = at
        return found

    @property
    def seconds(self) -> float:
        """From the first candidate that is dispatched to the last answer."""
        return self.taken[-1][0] - self.given[0][0]

    def figures(self) -> dict[str, Any]:
        """Returns the figures that `model.Found` has."""
        held = [seconds for seconds, _ in self.held()]
        return {
            "seconds": self.seconds,
            "evaluations": len(held),
            "throughput": len(held) / self.seconds,
            "busy": sum(held) / self.seconds / self.workers,
            "held": sum(held) / len(held),
        }

    def stages(self) -> list[tuple[tuple[str, float], ...]]:
        """Returns the stages of each candidate, including the rest."""
        found = []
        for seconds, stages in self.held():
            rest = max(0.0, seconds - sum(stages.values()))
            found.append((*stages.items(), (REST, rest)))
        return found

    def table(self) -> dict[str, Any]:
        """Returns the trace as plain data."""
        return asdict(self)


class TracedEvaluator(LocalEvaluator):
    """A local evaluator that records what its slots do."""

    def __init__(self, benches: Sequence[Bench], workers: int):
        self.trace = Trace(workers)
        self._began = time.monotonic()
        super().__init__(benches, workers)

    def evaluate(
        self, candidates: Sequence[Candidate], seconds: float | None = None
    ) -> Iterator[tuple[int, Evaluated]]:
        """Yields the outcomes of `LocalEvaluator`. The search stores and tells between two
        outcomes."""
        for found in super().evaluate(candidates, seconds):
            began = time.monotonic()
            yield found
            self.trace.told.append(time.monotonic() - began)

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _give(self, worker: Any, position: int, asked: Candidate) -> None:
        self.trace.given.append((self._now(), worker.process.pid))
        super()._give(worker, position, asked)

    def _take(self, worker: Any) -> tuple[int, Evaluated]:
        at = self._now()
        position, outcome = super()._take(worker)
        self.trace.taken.append((at, worker.process.pid, dict(outcome.seconds)))
        return position, outcome


def settings_of(wanted: RealSearch) -> Settings:
    """Returns the settings of a search that ends only after its evaluations."""
    workload = named(wanted.kernel)
    return Settings(
        kernel=wanted.kernel,
        spec=spec_text(workload.spec),
        target=wanted.target,
        backends=(backend_for(target(wanted.target)).manifest.name,),
        sizes={**workload.timed_sizes, **dict(wanted.sizes)},
        checks=workload.checks,
        evaluations=wanted.evaluations,
        roofline_share=None,
        seed=wanted.seed,
        secret="the same",
    )


def bench_of(settings: Settings) -> Bench:
    """Returns the bench of its candidates."""
    machine = target(settings.target)
    return Bench(
        spec=settings.spec,
        machine=machine,
        open=partial(backend_for, machine, settings.backends[0]),
        sizes=settings.sizes,
        checks=settings.checks,
        secret=settings.secret,
    )


def traced(wanted: RealSearch, workers: int) -> tuple[Trace, list[Candidate]]:
    """Returns the trace of a search with so many workers, in its own store, and its candidates."""
    study.load().join()  # Once per process, for any search.
    settings = settings_of(wanted)
    (name,) = settings.backends
    machine = target(settings.target)
    backend = backend_for(machine, name)
    served = Served(backend, served_by(machine, backend))
    operators = local_operators()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "store.db"))
        with TracedEvaluator([bench_of(settings)], workers) as local:
            before_workers()
            searching = Search(
                settings,
                Cached(local, store),
                store,
                machines={name: served.machine},
                policy=policy(settings.policy),
                operators={each: operators[each] for each in usual(operators)},
                identity=SourceIdentity({name: served}, settings.shapes),
            )
            notes: list[tuple[float, Event]] = []
            outcome = searching.run(lambda event: notes.append((time.monotonic(), event)))
        store.close()
    _proposals(local.trace, notes)
    return local.trace, [outcome.graph.node(key) for key in outcome.outcomes]


def alone(wanted: RealSearch, candidates: Sequence[Candidate], workers: int) -> Trace:
    """Returns the trace of so many workers that evaluate candidates, without a search."""
    with TracedEvaluator([bench_of(settings_of(wanted))], workers) as local:
        before_workers()
        for _ in local.evaluate(candidates):
            pass
    return local.trace


def before_workers() -> None:
    """Raises this process above its workers if it has real-time priority.

    It then wakes up for a moment, as under the usual scheduler, and does not wait for their time
    slices.
    """
    how = os.sched_getscheduler(0)
    if how in (os.SCHED_FIFO, os.SCHED_RR):
        most = os.sched_getparam(0).sched_priority + 1
        os.sched_setscheduler(0, how, os.sched_param(most))


def _proposals(trace: Trace, notes: Sequence[tuple[float, Event]]) -> None:
    """Records the time of each generation's proposals: from the last outcome of one to the next."""
    told, count, began = 0.0, 0, 0.0
    generation = 0
    for at, event in notes:
        if isinstance(event, Told):
            told = at
        elif isinstance(event, Asked):
            if event.generation != generation:
                _note(trace, generation, began, count)
                generation, began, count = event.generation, at - told, 0
            count += 1
    _note(trace, generation, began, count)


def _note(trace: Trace, generation: int, seconds: float, count: int) -> None:
    if generation == 0:
        trace.first = count
    else:
        trace.asked.append(seconds / count)
