"""Evaluates kernels that share shapes at held-out shapes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from backends.registry import backend_for
from backends.served import Served
from ir.errors import KernelError
from ir.estimate.cost import roofline
from ir.guards import FALLBACK, chosen
from ir.spec import Spec
from ir.workload import Sizes
from search.cli.suite import Problem
from search.core.candidate import Candidate, Origin
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.held_out import HeldOut, drawn
from search.core.lowered import fits_at, schedule_text, spec_of
from search.core.shape_dispatch import ShapeDispatch
from search.evaluator.shapes import AFFORDABLE_BYTES, AFFORDABLE_FLOPS, SLOW
from search.evaluator.stages import Bench
from search.warm_start.autoscheduled import scheduled
from search.warm_start.first import FIRST

if TYPE_CHECKING:  # only with --cluster
    from search.cli.clusters import Evaluating


def tried_at_held_out(
    problem: Problem,
    found: ShapeDispatch,
    count: int,
    workers: int | None,
    correct_by: str,
    evaluating: Evaluating,
) -> tuple[HeldOut, ...]:
    """The results of a dispatch at some held-out shapes, each kernel in a separate process.

    correct_by: how results are checked. If that is slow, they are compared only at the first check
    shape.
    """
    settings, machine = problem.settings, _served(problem, found).machine
    spec = spec_of(settings.spec)

    def possible(sizes: Sizes) -> bool:
        try:
            bound = roofline(spec, machine, sizes)
            scheduled(spec, machine, sizes)
            _chosen(problem, found, sizes)
        except KernelError:
            return False
        return bound.flops <= AFFORDABLE_FLOPS and bound.bytes <= AFFORDABLE_BYTES

    shapes = drawn(found.shapes, count, settings.seed, possible)
    here = correct_by not in SLOW
    return tuple(_at(problem, spec, found, sizes, workers, here, evaluating) for sizes in shapes)


def _at(
    problem: Problem,
    spec: Spec,
    found: ShapeDispatch,
    sizes: Sizes,
    workers: int | None,
    compared: bool,
    evaluating: Evaluating,
) -> HeldOut:
    settings, served = problem.settings, _served(problem, found)
    machine = served.machine
    number = _chosen(problem, found, sizes)
    kernels = [kernel.candidate for kernel in found.kernels]
    schedule = schedule_text(scheduled(spec, machine, sizes))
    first = Candidate(settings.spec, schedule, settings.target, served.name, origin=Origin(FIRST))
    bench = Bench(
        spec=settings.spec,
        machine=machine,
        open=partial(backend_for, machine, served.name),
        sizes=sizes,
        checks=() if compared else settings.checks[:1],
        rounded=settings.rounded,
    )
    asked = [c for n, c in enumerate(kernels) if _fits(problem, found, n, sizes)]
    asked = list({c.key: c for c in (*asked, first)}.values())
    with evaluating([bench], min(workers or len(asked), len(asked))) as local:
        outcomes = {asked[n].key: outcome for n, outcome in local.evaluate(asked)}
    times = {key: _us(outcome) for key, outcome in outcomes.items()}
    here = outcomes[kernels[number].key]
    ours = [us for c in kernels if (us := times.get(c.key)) is not None]
    return HeldOut(
        sizes=sizes,
        kernel=number,
        us=times[kernels[number].key],
        single_us=times.get(kernels[FALLBACK].key),
        least_us=min(ours, default=None),
        first_us=times[first.key],
        compared=compared,
        fault=f"{here.stage}: {here.reason}" if isinstance(here, Failure) else "",
    )


def _us(outcome: Evaluated) -> float | None:
    return outcome.us if isinstance(outcome, Evaluation) else None


def _chosen(problem: Problem, found: ShapeDispatch, sizes: Sizes) -> int:
    return chosen(found.guards, sizes, lambda n: _fits(problem, found, n, sizes))


def _fits(problem: Problem, found: ShapeDispatch, number: int, sizes: Sizes) -> bool:
    one = found.kernels[number].candidate
    return fits_at(one.variant, one.schedule, _served(problem, found).machine, sizes)


def _served(problem: Problem, found: ShapeDispatch) -> Served:
    """The backend of a dispatch's kernels."""
    return problem.served[found.kernels[FALLBACK].candidate.backend]
