"""Executes a well-formed command: opens the store, searches, and reports the results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ir.errors import KernelError
from search.cli.arguments import LOCAL, Arguments
from search.cli.files import keeper
from search.cli.invocation import Interrupt, Invocation
from search.cli.memory_limit import are_large, require_memory
from search.cli.models import sources
from search.cli.promote import destination
from search.cli.results import conclude, how_to_go_on
from search.cli.session import HELD_OUT, Session, SessionPlan
from search.cli.suite import Problem, Suite, resumed
from search.core.stored import Keeper
from search.display.display import display
from search.llm.endpoint import Endpoint, endpoint
from search.prompt.lessons import Folder, InStore, Lessons, beside
from search.store.address import SQLITE, address_of

if TYPE_CHECKING:  # only for jobs
    from search.cli.job import JobInStore
    from search.cli.job_file import Job
    from search.evaluator.nursery import Nursery

DONE, INCOMPLETE, FAULTY, INTERRUPTED = 0, 1, 2, 130
# from this number of workers on, forks of one process start faster than separate processes
MANY = 4
FIXED = {  # settings of a stored run that a user cannot change, with their options
    "kernels": "--kernel",
    "problem": "--problem",
    "task": "--task",
    "allow_torch": "--allow-torch",
    "model_new": "--model-new",
    "shapes": "--shape",
    "dispatch": "--dispatch",
    "policy": "--policy",
    "operators": "--operators",
    "models": "--model",
    "requests": "--requests",
    "answer_tokens": "--answer-tokens",
    "effort": "--effort",
    "weigh": "--weigh",
    "coach": "--coach",
    "steps": "--steps",
    "trials": "--trials",
    "seed": "--seed",
    "secret": "--secret",
    "backends": "--backend",
}


def execute(asked: Arguments, around: Invocation, found: Suite, job: Job | None = None) -> int:
    """Searches, and reports the results. Returns the exit code.

    found: the problems; empty if a stored run continues. job: the job of the searches; None: there
    is none, or a stored one continues.
    """
    shown = display(sys.stderr, around.quiet)
    with ExitStack() as stack:
        cluster = None
        if asked.cluster is not None:
            from search.cli.clusters import reached

            cluster = stack.enter_context(reached(asked.cluster, asked.workers, found.problems))
        store = stack.enter_context(closing(keeper(asked, around, shown.say)))
        known = bool(found.problems)
        nursery = None
        if cluster is None and found.calls:
            nursery = stack.enter_context(_nursery())
            nursery.warm(call.plan.served[0] for call in found.calls.values())
        found, asked, problems, of_job = _begun(asked, around, found, job, store, shown.say)
        wanted = destination(asked, around, problems)
        many = (asked.workers or around.workers) >= MANY
        shared = of_job is not None or many or are_large(problems)
        if nursery is None and cluster is None and shared:
            nursery = stack.enter_context(_nursery())
        if not known and asked.cluster in (None, LOCAL):
            require_memory(problems, asked.workers or around.workers, asked.trace is not None)
        plan = SessionPlan(
            store=store,
            workers=asked.workers or around.workers,
            destination=wanted,
            command=around.command(asked.words),
            held_out=HELD_OUT if asked.held_out is None else asked.held_out,
            sources=sources(asked.prices, _endpoint(asked, around), shown.say),
            memory=asked.memory,
            lessons=_lessons(asked, store),
            cluster=cluster,
            starts=nursery,
        )
        for note in found.notes:
            shown.say(note)
        session = Session(plan, shown, Interrupt())
        if of_job is None:
            session.run(problems)
        else:
            of_job.run(session)
    right = conclude(asked, around, session, found, of_job.table if of_job else None)
    for line in how_to_go_on(asked, around, session, of_job):
        print(line, file=sys.stderr)
    return _exit_code(session, right)


def _begun(
    asked: Arguments,
    around: Invocation,
    found: Suite,
    job: Job | None,
    store: Keeper,
    say: Callable[[str], None],
) -> tuple[Suite, Arguments, tuple[Problem, ...], JobInStore | None]:
    """The problems, as stored if they continue, with their job; and the arguments without the
    limits that the job has."""
    if found.module is not None:
        from search.cli.network import begun, measured, require_same

        found = measured(found, say)
        if asked.resume is None:
            job, asked = begun(found, asked, asked.workers or around.workers)
    if job is not None or (asked.resume is not None and is_job(asked.resume, store)):
        from search.cli.job import JobInStore

        of_job = JobInStore(asked, around.path, store, job, found.module is not None)
        if job is None and found.module is not None:
            require_same(found, of_job.problems, of_job.name)
        return found, of_job.asked, tuple(of_job.problems), of_job
    if asked.resume is not None:
        return found, asked, (_resumed(asked, asked.resume, around, store),), None
    if asked.replay is not None:
        one = _resumed(asked, asked.replay, around, store)
        return found, asked, (replace(one, run="", replays=asked.replay),), None
    return found, asked, found.problems, None


def _nursery() -> Nursery:
    from search.evaluator.nursery import Nursery  # not every search needs it

    return Nursery()


def _exit_code(session: Session, right: bool) -> int:
    """The exit code. right: whether the results of a task are correct."""
    if session.interrupt.came:
        return INTERRUPTED
    faults = {str(e.outcome.fault) for e in session.ended if e.outcome.fault}
    for fault in sorted(faults):
        print(f"evolve: {fault}", file=sys.stderr)
    if faults:
        return FAULTY
    correct = all(e.outcome.best is not None for e in session.ended)
    return DONE if correct and right and not session.faults else INCOMPLETE


def is_job(name: str, store: Keeper) -> bool:
    """Whether a stored name is that of a job and not of a run."""
    from search.store.jobs import StoredJobs
    from search.store.store import Store

    return isinstance(store, Store) and name in StoredJobs(store).names()


def _endpoint(asked: Arguments, around: Invocation) -> Endpoint | None:
    """The user's endpoint, with the user's time limits."""
    found = endpoint(around.variables)
    if found is None:
        return None
    deadline = asked.answer_timeout or found.deadline
    silence = min(asked.silence_timeout or found.silence, deadline)
    return replace(found, deadline=deadline, silence=silence)


def _lessons(asked: Arguments, store: Keeper) -> Lessons | None:
    if not asked.lessons:
        return None
    if asked.no_store:
        raise KernelError(
            "lessons are kept with a store", where="--lessons", hint="leave --no-store out"
        )
    in_file = address_of(store.url).kind == SQLITE
    return Lessons(Folder(beside(store.url)) if in_file else InStore(store))


def _resumed(asked: Arguments, run: str, around: Invocation, store: Keeper) -> Problem:
    for name, option in FIXED.items():
        if getattr(asked, name) not in (None, ()):
            raise KernelError(
                "a resumed run keeps its options",
                where=option,
                hint="leave it out, or start a new run without --resume",
            )
    return resumed(asked, run, store.load(run).settings, around.path)
