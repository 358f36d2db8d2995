"""The outcome of a stored run, from its log and without any evaluation."""

from __future__ import annotations

from ir.errors import KernelError
from ir.machine import Machine
from search.core.archive import Archive
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.lowered import spec_of
from search.core.measures import named
from search.core.outcome import Outcome
from search.core.shape_dispatch import shape_dispatch
from search.core.stored import StoredRun
from search.core.workload import bound_us, bounds_us
from search.warm_start.first import PLAIN

ENDED, INTERRUPTED, OPEN = "ended", "interrupted", "not ended"


def told(record: StoredRun) -> dict[str, Evaluated]:
    """The reported outcomes by key, in order."""
    keys = [event.key for event in record.events if event.kind == "told"]
    return {key: record.outcomes[key] for key in keys if key in record.outcomes}


def fastest(outcomes: dict[str, Evaluated]) -> tuple[str, Evaluation] | None:
    """The key and the evaluation of the fastest candidate, of equals the first; None if none is
    correct."""
    found = [(key, o) for key, o in outcomes.items() if isinstance(o, Evaluation)]
    return min(found, key=lambda each: each[1].us, default=None)


def ending(record: StoredRun) -> tuple[str, str]:
    """The state of a run, and why it stopped; the reason is empty if it did not stop."""
    last = record.events[-1] if record.events else None
    if last is None or last.kind != "stopped":
        return OPEN, ""
    return (INTERRUPTED if "interrupted" in last.detail else ENDED), last.detail


def retold(record: StoredRun, machine: Machine) -> Outcome:
    """The outcome of a run as far as it is stored, without its archive. Raises KernelError if the
    run was killed before its first candidates."""
    if not record.generations:
        raise KernelError(
            f"run `{record.run}` has evaluated nothing yet",
            hint="continue it with --resume, or name another",
        )
    settings, outcomes, graph = record.settings, told(record), record.graph()
    spec, roots = spec_of(settings.spec), record.generations[0]
    plain = next((c for c in roots if c.origin.operator == PLAIN), None)
    found = fastest(outcomes)
    failures: dict[str, int] = {}
    for outcome in outcomes.values():
        if isinstance(outcome, Failure) and not outcome.slow:
            failures[outcome.stage] = failures.get(outcome.stage, 0) + 1
    best = graph.node(found[0]) if found else None
    several = settings.dispatch > 1 and len(settings.shapes) > 1
    return Outcome(
        run=record.run,
        settings=settings,
        evaluations=len(outcomes),
        failures=failures,
        first=roots[0],
        first_us=_us(outcomes, roots[0]),
        plain_us=_us(outcomes, plain) if plain else None,
        best=best,
        evaluation=found[1] if found else None,
        roofline_us=bound_us(spec, machine, settings.shapes),
        stopped_because=ending(record)[1] or "it has not ended",
        seconds=record.seconds,
        archive=Archive(tuple(len(m.labels) for m in named(settings.measures))),
        graph=graph,
        outcomes=outcomes,
        bounds_us=bounds_us(spec, machine, settings.workload),
        same_source=record.same_source,
        slow=sum(isinstance(o, Failure) and o.slow for o in outcomes.values()),
        dispatch=shape_dispatch(settings, best, graph, outcomes) if best and several else None,
    )


def _us(outcomes: dict[str, Evaluated], candidate: Candidate) -> float | None:
    outcome = outcomes.get(candidate.key)
    return outcome.us if isinstance(outcome, Evaluation) else None
