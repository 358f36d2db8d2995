"""Searches for the kernels of a call in the calling process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from ir.errors import KernelError
from ir.workload import Workload
from search.cli.arguments import Arguments
from search.cli.files import keeper, require_engine
from search.cli.invocation import Interrupt, current_invocation
from search.cli.job import JobInStore
from search.cli.models import sources
from search.cli.network import (
    FoundCall,
    found_call,
    kernel_search,
    network_job,
    none_correct,
    require_right,
)
from search.cli.promote import Destination
from search.cli.session import Session, SessionPlan
from search.cli.suite import kernel_problem
from search.core.phases import phase
from search.core.workload import WeightedShape
from search.display.display import Display
from search.evaluator.nursery import Nursery
from search.llm.endpoint import endpoint
from search.store.address import word_without_password
from search.whole.plan import CallPlan, Say


def searched(
    asked: Arguments,
    name: str,
    plan: CallPlan,
    records: Path,
    command: str,
    shown: Display,
    nursery: Nursery,
) -> Session:
    """Searches for the kernels, and writes winners to a folder of records.

    name: of the module. command: the user's words, for the records. nursery: workers of this machine.

    Reports a kernel that cannot be searched, also in the session's `faults`. Raises KernelError if
    nothing is found for any kernel, and KeyboardInterrupt if the user ended the search.
    """
    around = current_invocation()
    ours, fixed = not asked.targets[0].endswith(".toml"), (WeightedShape({}),)
    seeds = plan.seeds()
    more = {by.name: by for each in seeds for by in each.served if by not in plan.served}
    if more and asked.cluster is None:
        nursery.warm(more.values())
    searches, faults = [], {}
    for each in seeds:
        workload = Workload(each.spec, {}, ({},))
        try:
            problem = kernel_problem(asked, workload, each.served, ours, None, fixed)
        except KernelError as error:
            faults[each.spec.name] = error
            shown.say(str(error))
            continue
        searches.append(kernel_search(problem, each, asked.workers or around.workers))
    if faults and not searches:
        raise next(iter(faults.values()))
    job, asked = network_job(name, searches, asked)
    with ExitStack() as stack:
        on = None
        if asked.cluster is not None:
            require_engine()
            from search.cli.clusters import reached

            on = stack.enter_context(reached(asked.cluster, asked.workers, job.problems))
        with phase("store"):
            kept = stack.enter_context(closing(keeper(asked, around, shown.say)))
            rounds = JobInStore(asked, around.path, kept, job)
        session_plan = SessionPlan(
            store=kept,
            workers=asked.workers or around.workers,
            destination=Destination(out=records),
            command=command,
            sources=sources((), endpoint(around.variables), shown.say),
            memory=asked.memory,
            cluster=on,
            starts=nursery if on is None else None,
        )
        session = Session(session_plan, shown, Interrupt())
        session.faults |= faults
        rounds.run(session)
    _require_found(session)
    return session


def _require_found(session: Session) -> None:
    """If something is found, a kernel without a correct candidate keeps its seed schedule, which is
    reported. So does a kernel for which there was no time."""
    if session.interrupt.came:
        raise KeyboardInterrupt
    found = any(ended.outcome.best is not None for ended in session.ended)
    for ended in session.ended:
        if ended.outcome.fault is not None:
            session.note(ended.problem, ended.outcome.fault)
        elif ended.outcome.best is None and ended.outcome.evaluations:
            session.note(ended.problem, none_correct(ended))
    for fault in session.faults.values() if not found else ():
        raise fault


def call_of(plan: CallPlan, session: Session, say: Say) -> FoundCall:
    """`found_call` of a session, without winners that could not be kept, because no record has
    them. Raises KernelError if the call needs a kernel without a correct candidate."""
    ended = session.ended
    kept = [e for e in ended if e.outcome.best is None or e.problem.title not in session.faults]
    call = found_call(plan, kept, say)
    require_right(call, ended)
    return call


def words_of(said: Sequence[str], function: str) -> str:
    """A function's arguments as a command, without a store's password."""
    return f"{function}: {' '.join(map(word_without_password, said))}"
