"""The conduct of a command that is well-formed: opens the store, searches, concludes."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace

from ir.errors import KernelError
from search.command.arguments import Arguments
from search.command.conclusion import conclude, how_to_go_on
from search.command.destination import destination
from search.command.interrupt import Interrupt
from search.command.models import sources
from search.command.packages import require
from search.command.problem import Problem
from search.command.session import Plan, Session
from search.command.suite import Suite, resumed
from search.command.surroundings import Surroundings
from search.command.unseen import UNSEEN
from search.display.display import display
from search.llm.endpoint import endpoint
from search.prompt.lessons import Lessons, beside
from search.stored import Keeper

DONE, INCOMPLETE, FAULTY, INTERRUPTED = 0, 1, 2, 130
FIXED = {  # what a stored run has decided, and the option that says it
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
    "seed": "--seed",
    "backend": "--backend",
}


def conduct(asked: Arguments, around: Surroundings, found: Suite) -> int:
    """Searches, and says what was found; the exit code.

    found: what to search for; nothing where a stored run is to go on, which knows it.
    """
    problems = found.problems
    with closing(_keeper(asked, around)) as store:
        if asked.resume is not None:
            problems = (_resumed(asked, asked.resume, around, store),)
        elif asked.replay is not None:
            found_run = _resumed(asked, asked.replay, around, store)
            problems = (replace(found_run, run="", replays=asked.replay),)
        shown = display(sys.stderr, around.quiet)
        plan = Plan(
            store=store,
            workers=asked.workers or around.workers,
            checkout=destination(asked, around, problems),
            command=around.command(asked.words),
            unseen=UNSEEN if asked.unseen is None else asked.unseen,
            sources=sources(asked.prices, endpoint(around.variables), shown.say),
            memory=asked.memory,
            lessons=_lessons(asked, around),
        )
        session = Session(plan, shown, Interrupt())
        session.run(problems)
    right = conclude(asked, around, session, found)
    for line in how_to_go_on(asked, around, session):
        print(line, file=sys.stderr)
    if session.interrupt.came:
        return INTERRUPTED
    faults = {str(e.outcome.fault) for e in session.ended if e.outcome.fault}
    for fault in sorted(faults):
        print(f"evolve: {fault}", file=sys.stderr)
    if faults:
        return FAULTY
    correct = all(e.outcome.best is not None for e in session.ended)
    return DONE if correct and right and not session.faults else INCOMPLETE


def _keeper(asked: Arguments, around: Surroundings) -> Keeper:
    """Where runs are kept; KernelError where what that takes is not there."""
    if asked.no_store:
        from search.store.forgetful import Forgetful

        return Forgetful()
    require("sqlalchemy", "it keeps runs in a store", "install it, or give --no-store")
    from search.store.store import Store

    return Store(_url(asked, around))


def _lessons(asked: Arguments, around: Surroundings) -> Lessons | None:
    if not asked.lessons:
        return None
    if asked.no_store:
        raise KernelError(
            "lessons are kept beside a store", where="--lessons", hint="leave --no-store out"
        )
    return beside(_url(asked, around))


def _url(asked: Arguments, around: Surroundings) -> str:
    """The store's URL or path. A run can only go on where there is one: none is made for it."""
    if asked.store is not None and "://" in asked.store:
        return asked.store
    store = around.path(asked.store or around.store)
    run = asked.resume or asked.replay
    if run is not None and not store.is_file():
        raise KernelError(
            f"there is no store in `{store}`, so there is no run `{run}` to go on with",
            where="--resume" if asked.resume else "--replay",
            hint="name the store that the run was made in with --store",
        )
    return str(store)


def _resumed(asked: Arguments, run: str, around: Surroundings, store: Keeper) -> Problem:
    for name, option in FIXED.items():
        if getattr(asked, name) not in (None, ()):
            raise KernelError(
                "a run that goes on keeps what it was started with",
                where=option,
                hint="leave it out, or start a new run without --resume",
            )
    return resumed(asked, run, store.load(run).settings, around.path)
