"""A job: repeats rounds of its searches, each a stored run that continues, until the budget is used
up.

All data of a job is in the store: its searches, its rounds and their runs. A round is stored before
it begins. An interrupted round is repeated: its run continues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ir.errors import KernelError
from search.cli.arguments import Arguments
from search.cli.job_file import REFUSED, Job
from search.cli.job_stored import JobPlan, job_plan, job_table, job_text
from search.cli.session import Ended, Session, secret_of
from search.cli.suite import Problem, resumed
from search.cli.targets import machine
from search.core import quantity
from search.core.evaluation import Evaluation
from search.core.lowered import spec_of
from search.core.outcome import Outcome
from search.core.phases import phase
from search.core.settings import Settings
from search.core.stored import Keeper
from search.core.stored_job import JobKeeper, StoredJob, StoredRound
from search.core.workload import bound_us
from search.loop.retold import retold, told
from search.loop.rounds import Idle, JobBudget, JobStanding, next_round, shares, spent
from search.loop.termination import Progress, first_reason, rules_of
from search.store.forgetful import Forgetful, ForgetfulJobs


def job_keeper(store: Keeper) -> JobKeeper:
    """The store of jobs that belongs to a store of runs."""
    if isinstance(store, Forgetful):
        return ForgetfulJobs(store)
    from search.store.jobs import StoredJobs  # a database takes long to import
    from search.store.store import Store

    assert isinstance(store, Store), "there are no others"
    return StoredJobs(store)


def started(job: Job, jobs: JobKeeper, store: Keeper) -> tuple[StoredJob, list[Problem]]:
    """Adds a new job to the store, for this process. Returns it with its searches."""
    problems = [
        replace(each.problem, settings=_drawn(each.problem.settings, job.seed, store))
        for each in job.searches
    ]
    text = job_text(job, [problem.settings for problem in problems])
    return jobs.load(jobs.add(job.name, text)), problems


def _drawn(settings: Settings, seed: int, store: Keeper) -> Settings:
    """The settings with a secret that depends on the kernel and the job's seed only, so that
    searches for the same kernel share outcomes."""
    return replace(settings, secret=secret_of(replace(settings, seed=seed), store))


class JobInStore:
    """A job of a command, new or continued.

    asked: the command's arguments, replaced by the job's. of_module: whether they name the module
    of a continued job's kernels.
    """

    def __init__(
        self,
        asked: Arguments,
        path: Callable[[str], Path],
        store: Keeper,
        job: Job | None,
        of_module: bool = False,
    ):
        self._jobs = job_keeper(store)
        self._store = store
        if job is not None:
            self.stored, self.problems = started(job, self._jobs, store)
            self.target_files = job.target_files
        else:
            _require_unsaid(asked, OF_MODULE if of_module else FREE)
            self.stored = self._jobs.resume(asked.resume or "")
            self.problems = problems_of(self.stored, asked, path, store)
            self.target_files = asked.targets
        plan = job_plan(self.stored.text)
        self.asked = replace(
            asked, memory=plan.memory, lessons=plan.lessons, held_out=plan.held_out
        )
        self.table: dict[str, Any] = {}  # state of the job; empty before `run`

    @property
    def name(self) -> str:
        """The name in the store."""
        return self.stored.job

    def run(self, session: Session) -> None:
        """Continues the job; see `Rounds`."""
        Rounds(session, self._jobs, self.stored, self.asked, self.problems).run()
        self.table = job_table(self._jobs.load(self.name), self._store)


# Options that are allowed for a continued job; `targets` names a job's target files
FREE = ("targets", "evaluations", "seconds")
OF_MODULE = (*FREE, "problem", "task", "reduced", "allow_torch", "backends")


def _require_unsaid(asked: Arguments, free: Collection[str]) -> None:
    """Raises KernelError if an option repeats what a continued job has stored."""
    for name, option in REFUSED.items():
        if name not in free and getattr(asked, name) not in (None, (), False):
            raise KernelError(
                "a resumed job keeps its options",
                where=option,
                hint="leave it out, or start a new job with --job",
            )


class Rounds:
    """A job in this process.

    session: `ended`, `faults` and `left` hold the results. asked: may widen the budget. problems:
    its searches; those that have begun have their stored settings.
    """

    def __init__(
        self,
        session: Session,
        jobs: JobKeeper,
        stored: StoredJob,
        asked: Arguments,
        problems: Sequence[Problem],
    ):
        self.session = session
        self.store = session.plan.store
        self.jobs = jobs
        self.job = stored.job
        plan = job_plan(stored.text)
        self.budget = widened(plan, asked)
        self.shares = [share for _, share in plan.searches]
        self.rounds = list(stored.rounds)
        self.runs = runs_of(stored)
        self.problems = list(problems)
        over = {each.search for each in self.rounds if each.over}
        self.standings = [self._standing(n, n in over) for n in range(len(self.runs))]
        self._known: dict[int, Ended] = {}  # searches of this process
        self._idle = Idle()

    def run(self) -> None:
        """Continues the job until its budget is used up, or until an interrupt."""
        session = self.session
        with session.interrupt, session.display:
            try:
                with session.kept:
                    self._go_on()
                with phase("records"):
                    self._finish()
            except KeyboardInterrupt:
                pass  # outside a search's own loop
        every = {n: self._ended(n) for n in range(len(self.runs))}
        session.ended = [ended for ended in every.values() if ended is not None]
        session.left = [self.problems[n] for n, ended in every.items() if ended is None]
        self.jobs.let_go(self.job)

    def _go_on(self) -> None:
        for each in [r for r in self.rounds if not r.ended]:
            self._timed(each)
        while not self.session.interrupt.came:
            found = next_round(self.standings, self._idle.left(self.budget))
            if found is None:
                return
            had = self.standings[found.search].evaluations
            begun = StoredRound(
                number=len(self.rounds),
                search=found.search,
                evaluations=had + found.evaluations,
                run=self.runs[found.search],
            )
            self.jobs.begin(self.job, begun)
            self.rounds.append(begun)
            self._timed(begun)

    def _timed(self, begun: StoredRound) -> None:
        with self._idle.of_round(lambda: spent(self.standings)[1]):
            self._round(begun)

    def _round(self, begun: StoredRound) -> None:
        """Continues a search to the end of a round. A search that fails gets no further round here,
        and its round stays open for a later resume."""
        session, n = self.session, begun.search
        if session.interrupt.came:
            return
        problem = self._limited(begun)
        self._say(begun)
        if (following := self._following(n)) is not None:
            session.expect(self.problems[following])
        session.display.begin(n + 1, len(self.runs), problem.title)
        try:
            ended = session.search(problem, [] if problem.run else self._alike(n))
        except KernelError as error:
            session.note(problem, error)
            self.standings[n] = replace(self.standings[n], over=True)
            return
        run = ended.outcome.run
        self.runs[n], self._known[n] = run, ended
        self.problems[n] = replace(ended.problem, run=run)
        self.standings[n] = self._standing(n, ended.outcome.fault is not None)
        if ended.interrupted or ended.outcome.fault is not None:
            return
        over = self._is_over(begun, ended)
        self.standings[n] = replace(self.standings[n], over=over)
        self.jobs.end(self.job, begun.number, ended.outcome.stopped_because, over)
        session.learn(ended)

    def _following(self, n: int) -> int | None:
        """The search of the next round, if search `n` is over."""
        others = [replace(s, over=s.over or m == n) for m, s in enumerate(self.standings)]
        found = next_round(others, self._idle.left(self.budget))
        return None if found is None else found.search

    def _limited(self, begun: StoredRound) -> Problem:
        """The problem of a round, with its limits."""
        n, problem = begun.search, self.problems[begun.search]
        settings = replace(
            problem.settings, evaluations=begun.evaluations, seconds=self._seconds(n)
        )
        if not self.runs[n]:
            settings = replace(settings, job=f"{self.job}/{begun.number}")
        return replace(problem, settings=settings, run=self.runs[n])

    def _seconds(self, n: int) -> float | None:
        """The limit on a search's working time; None: no limit."""
        limits = [self.shares[n].seconds]
        if (most := self._idle.left(self.budget).seconds) is not None:
            left = most - spent(self.standings)[1]
            limits.append(self.standings[n].seconds + max(0.0, left))
        return min((s for s in limits if s is not None), default=None)

    def _is_over(self, begun: StoredRound, ended: Ended) -> bool:
        """Whether a search ended by its own rule and not by the round's limit."""
        settings, standing = ended.problem.settings, self.standings[begun.search]
        if standing.evaluations < begun.evaluations:
            return settings.seconds is None or standing.seconds < settings.seconds
        rules = rules_of(replace(settings, evaluations=None, seconds=None))
        return first_reason(rules, _progress(standing, ended.outcome)) is not None

    def _standing(self, n: int, over: bool) -> JobStanding:
        problem = self.problems[n]
        bound = bound_us(spec_of(problem.settings.spec), problem.machine, problem.settings.shapes)
        if not self.runs[n]:
            return JobStanding(self.shares[n], roofline_us=bound, over=over)
        record = self.store.load(self.runs[n])
        times = tuple(
            o.us if isinstance(o, Evaluation) else math.inf for o in told(record).values()
        )
        return JobStanding(self.shares[n], times, record.seconds, bound, over)

    def _alike(self, n: int) -> list[tuple[Problem, Outcome]]:
        """The other searches for the same kernel, with their outcomes so far."""
        kernel = self.problems[n].settings.kernel
        return [
            (problem, self._outcome(m))
            for m, problem in enumerate(self.problems)
            if m != n and problem.settings.kernel == kernel and self.standings[m].times
        ]

    def _outcome(self, n: int) -> Outcome:
        """The outcome of a search so far, from the store."""
        problem = self.problems[n]
        record = replace(self.store.load(self.runs[n]), settings=problem.settings)
        return retold(record, problem.machine)

    def _ended(self, n: int) -> Ended | None:
        """The result of a search with at least one evaluation; None otherwise."""
        if n in self._known or not self.standings[n].times:
            return self._known.get(n)
        environment = self.store.load(self.runs[n]).environment
        return Ended(self.problems[n], self._outcome(n), environment, interrupted=False)

    def _finish(self) -> None:
        """Finishes the searches: lessons, records, held-out shapes. Among searches for the same
        kernel and target, the fastest result becomes the record."""
        best: dict[tuple[str, str], int] = {}
        every = [n for n in range(len(self.runs)) if self.standings[n].times]
        for n in sorted(every, key=lambda n: (self.standings[n].best_us, n)):
            best.setdefault(_place(self.problems[n]), n)
        for n in every:
            if self.session.interrupt.came:
                return
            ended = self._ended(n)
            assert ended is not None, "it has tried something"
            self._known[n] = ended
            try:
                if best[_place(self.problems[n])] == n:
                    self.session.finish(ended)
                else:
                    self.session.learn(ended)
            except KernelError as error:
                self.session.note(self.problems[n], error)

    def _say(self, begun: StoredRound) -> None:
        """Shows the progress of the job before a round."""
        made, seconds = spent(self.standings)
        parts = [
            f"{quantity.count(made, 'evaluation')} made"
            if self.budget.evaluations is None
            else (f"{made} of {quantity.count(self.budget.evaluations, 'evaluation')} made")
        ]
        if self.budget.seconds is not None:
            parts.append(f"{seconds:.0f} of {self.budget.seconds:g} s taken")
        over = sum(not s.open for s in self.standings)
        parts.append(f"{over} of {len(self.standings)} searches over")
        more = begun.evaluations - self.standings[begun.search].evaluations
        words = f"up to {quantity.count(more, 'evaluation')}"
        if self.shares[begun.search].network:
            words += (
                f" of what takes {quantity.share(shares(self.standings)[begun.search])} of a call"
            )
        self.session.display.say(
            f"job {self.job}, round {begun.number + 1}, {words}: {', '.join(parts)}"
        )


def _place(problem: Problem) -> tuple[str, str]:
    """The identity of a record."""
    return problem.settings.kernel, problem.settings.target


def widened(plan: JobPlan, asked: Arguments) -> JobBudget:
    """The budget of a job, with the user's new limits."""
    wanted = {n: getattr(asked, n) for n in ("evaluations", "seconds")}
    return replace(plan.budget, **{n: value for n, value in wanted.items() if value is not None})


def _progress(standing: JobStanding, outcome: Outcome) -> Progress:
    """The progress of a search, for its own rules."""
    times = standing.times
    best = standing.best_us
    return Progress(
        evaluations=len(times),
        seconds=standing.seconds,
        since_gain=len(times) - 1 - times.index(best) if best < math.inf else len(times),
        best_us=best if best < math.inf else None,
        roofline_us=standing.roofline_us,
        first_us=outcome.first_us,
    )


def runs_of(stored: StoredJob) -> list[str]:
    """The run of each search of a job; empty if it has none."""
    found = [""] * len(job_plan(stored.text).searches)
    for each in stored.rounds:
        found[each.search] = each.run or found[each.search]
    return found


def problems_of(
    stored: StoredJob, asked: Arguments, path: Callable[[str], Path], store: Keeper
) -> list[Problem]:
    """The searches of a stored job; those that have begun have their stored settings.

    asked: names the target files that do not belong to the project.
    """
    files = {machine(name, path)[0].name: name for name in asked.targets}
    limits = {each.search: each.evaluations for each in stored.rounds}
    found = []
    every = zip(job_plan(stored.text).searches, runs_of(stored), strict=True)
    for n, ((chosen, _), run) in enumerate(every):
        own = (files[chosen.target],) if chosen.target in files else ()
        settings = replace(store.load(run).settings, evaluations=limits[n]) if run else chosen
        limitless = replace(asked, targets=own, evaluations=None, seconds=None)
        found.append(resumed(limitless, run, settings, path))
    return found
