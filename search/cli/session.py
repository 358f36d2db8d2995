"""The session: runs one search after another, with its preparation, display, records and held-out
shapes."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.registry import backend_for, target
from ir.errors import KernelError
from search.cli.confirm import require_confirmed
from search.cli.held_out_shapes import tried_at_held_out
from search.cli.invocation import Interrupt
from search.cli.models import RunModels, Sources, model_operators, models_of
from search.cli.promote import Destination, promote, winner, winner_source, winner_texts
from search.cli.suite import Problem
from search.cli.tables import SummaryLine
from search.core.candidate import Candidate
from search.core.held_out import HeldOut
from search.core.lowered import spec_of
from search.core.outcome import Outcome
from search.core.phases import phase
from search.core.provenance import here
from search.core.settings import Settings
from search.core.stored import Keeper
from search.core.transferred import Transferred
from search.display.display import Display
from search.evaluator.cache import Cached
from search.evaluator.identity import SourceIdentity
from search.evaluator.kept import KeptEvaluators
from search.evaluator.local import LocalEvaluator, Starts
from search.evaluator.stages import Bench
from search.loop.context import Operator
from search.loop.hooks import Unavailable
from search.loop.run import Search
from search.loop.shared import Shared
from search.operator import MODEL_OPERATORS, TUNERS, local_operators, study, usual
from search.operator.study import lacking
from search.operator.trials import Trials
from search.policy import policy
from search.prompt.document import document
from search.prompt.lesson import distil
from search.prompt.lessons import Lessons
from search.prompt.operations import operations
from search.record.record import Written, write_record
from search.warm_start.recall import recalled

if TYPE_CHECKING:  # only with --cluster
    from search.cli.clusters import Evaluating, OnCluster
    from search.evaluator.remote import RemoteEvaluator

SECRET = 32  # characters
HELD_OUT = 10  # shapes, by default


@dataclass(frozen=True, slots=True)
class Prepared:
    """A search with its operators and models."""

    problem: Problem
    operators: Mapping[str, Operator]  # by name
    models: RunModels | None  # None if no model is asked

    def close(self) -> None:
        """Closes connections."""
        if self.models is not None:
            self.models.close()


def prepared(
    problem: Problem,
    sources: Sources,
    store: Keeper,
    *,
    ended: Sequence[tuple[Problem, Outcome]] = (),
    memory: bool = False,
    lessons: Lessons | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Prepared:
    """Prepares a search. A resumed or replayed run keeps its stored settings.

    ended: earlier searches of this session, whose winners for the same kernel become seeds. memory:
    whether earlier runs in the store give seeds too. lessons: None: not used.
    """
    if not (problem.run or problem.replays):
        problem = _warm_started(problem, store, ended, memory, lessons)
    settings = problem.settings
    operators = local_operators(settings.preferences)
    models = None
    if not settings.operators or set(settings.operators) & set(MODEL_OPERATORS):
        models = models_of(problem, sources, store)
    elif settings.models:
        say(f"no model is used: --operators names neither {' nor '.join(MODEL_OPERATORS)}")
    if models is not None:
        skills = [document(f"lesson{n}", text) for n, text in enumerate(settings.lessons)]
        operators |= model_operators(problem, models, skills)
    if (models or not settings.operators) and (package := lacking()):
        say(f"nothing is tuned: the Python package `{package}` is not installed here")
    wanted = settings.operators or usual(operators)
    chosen = {name: o for name, o in operators.items() if name in wanted}
    if not chosen:
        say("none of the operators can be used; all that need no model are taken")
        chosen = local_operators(settings.preferences)
    return Prepared(problem, chosen, models)


def _warm_started(
    problem: Problem,
    store: Keeper,
    ended: Sequence[tuple[Problem, Outcome]],
    memory: bool,
    lessons: Lessons | None,
) -> Problem:
    settings = problem.settings
    transferred = [
        _transferred(p, o) for p, o in ended if p.settings.kernel == settings.kernel and o.best
    ]
    if memory:
        transferred += recalled(store, settings, lambda name: target(name).backends)
    settings = replace(
        settings,
        transferred=tuple(transferred),
        secret=settings.secret or secret_of(settings, store),
    )
    if lessons is not None:
        kinds = operations(spec_of(settings.spec))
        settings = replace(
            settings,
            preferences=dict(lessons.preferences(problem.machine, kinds)),
            lessons=tuple(d.file_text for d in lessons.documents(problem.machine)),
        )
    return replace(problem, settings=settings)


def secret_of(settings: Settings, store: Keeper) -> str:
    """The secret of a new run's checks. It is the same for the same command with the same store, so
    that stored outcomes can be used."""
    said = f"{settings.spec}\n{settings.seed}".encode()
    return hmac.new(store.secret().encode(), said, "sha256").hexdigest()[:SECRET]


def _transferred(problem: Problem, outcome: Outcome) -> Transferred:
    """The winner of another search, with its source."""
    best, found = outcome.best, outcome.evaluation
    assert best is not None and found is not None, "it was asked for"
    return Transferred(
        target=best.target,
        backend=best.backend,
        variant=best.variant,
        schedule=best.schedule,
        us=found.us,
        time_kind=found.time_kind,
        run=outcome.run,
        source=winner_source(problem, outcome),
        edited=best.source is not None,
    )


@dataclass(slots=True)
class Ended:
    """A search that has ended."""

    problem: Problem
    outcome: Outcome
    environment: Mapping[str, object]  # the evaluator's description
    interrupted: bool
    record: str = ""  # folder of the winner in the checkout; empty if it was not written
    out: str = ""  # user's folder of the winner; empty if it was not written
    held_out: tuple[HeldOut, ...] = ()

    @property
    def here(self) -> Mapping[str, str]:
        """The description of this machine by the winner's backend."""
        return here(self.environment, self.outcome.backend)

    @property
    def line(self) -> SummaryLine:
        """The row of the summary."""
        return SummaryLine(self.outcome, self.record, self.here, self.held_out, self.out)

    def table(self) -> dict[str, Any]:
        """The result as plain data, with the winner's texts."""
        return self.line.table(winner_texts(self.problem, self.outcome))


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """The settings of all searches of a session."""

    store: Keeper
    workers: int
    destination: Destination  # destination of winners
    command: str  # the user's command, for the report
    sources: Sources  # of models' answers
    memory: bool = False  # whether searches start from the results of earlier runs
    lessons: Lessons | None = None  # store of lessons; None if they are not kept
    held_out: int = HELD_OUT
    cluster: OnCluster | None = None  # where candidates are evaluated; None: on this machine
    # Starts workers on this machine; None: each search starts its own
    starts: Starts | None = None


class Session:
    """The searches of one command.

    ended: the searches so far; the last may be interrupted (`unfinished`). faults: errors that
    prevented others, by title. left: those that have not begun.
    """

    def __init__(self, plan: SessionPlan, display: Display, interrupt: Interrupt):
        self.plan = plan
        self.display = display
        self.interrupt = interrupt
        self.ended: list[Ended] = []
        self.faults: dict[str, KernelError] = {}
        self.left: list[Problem] = []
        self.kept = KeptEvaluators()

    @property
    def unfinished(self) -> Ended | None:
        """The search that an interrupt stopped; None if there is none."""
        stopped = self.interrupt.came and self.ended and self.ended[-1].interrupted
        return self.ended[-1] if stopped else None

    def run(self, problems: Sequence[Problem]) -> None:
        """Runs all problems, or those before an interrupt.

        A failed search does not prevent others; if it is the only one, its KernelError is raised.
        """
        self.left = list(problems)
        with self.interrupt, self.display:
            for number, problem in enumerate(problems, 1):
                self.display.begin(number, len(problems), problem.title)
                try:
                    self._one(problem)
                except KernelError as error:
                    if len(problems) == 1:
                        raise
                    self.left.remove(problem)
                    self.note(problem, error)
                except KeyboardInterrupt:
                    return  # before or after the search's own loop
                if self.interrupt.came:
                    return

    def _one(self, asked: Problem) -> None:
        ended = self.search(asked, [(e.problem, e.outcome) for e in self.ended])
        self.left.remove(asked)
        self.ended.append(ended)
        if not self.interrupt.came:
            self.finish(ended)

    def search(self, asked: Problem, known: Sequence[tuple[Problem, Outcome]]) -> Ended:
        """Runs a search until its limits are reached or an interrupt comes. known: other searches,
        whose winners for the same kernel are seeds."""
        with phase("prepare"):
            equipment = self._prepared(asked, known)
        with closing(equipment):
            return self._search(equipment)

    def _prepared(self, asked: Problem, known: Sequence[tuple[Problem, Outcome]]) -> Prepared:
        plan = self.plan
        return prepared(
            asked,
            plan.sources,
            plan.store,
            ended=known,
            memory=plan.memory,
            lessons=plan.lessons,
            say=self.display.say,
        )

    def expect(self, asked: Problem) -> None:
        """Prepares for a search that is probably next, while another one runs."""
        if self.plan.starts is not None:
            self.plan.starts.expect(_benches(asked))

    def finish(self, ended: Ended) -> None:
        """Finishes a search: lessons, records, held-out shapes."""
        self.learn(ended)
        self._keep(ended)
        self._try_held_out(ended)

    def _search(self, equipment: Prepared) -> Ended:
        problem, settings = equipment.problem, equipment.problem.settings
        with ExitStack() as stack:
            with phase("open workers"):
                local = stack.enter_context(self._evaluator(problem))
            known = Cached(local, self.plan.store)
            if equipment.models is not None:
                equipment.models.judge.open(known)
            leases = self.plan.store.leases
            if settings.evaluations != 0 and set(equipment.operators) & set(TUNERS):
                study.load()  # while the first candidates are evaluated
            search = Search(
                settings,
                known if leases is None else Shared(known, leases),
                self.plan.store,
                machines={name: one.machine for name, one in problem.served.items()},
                policy=policy(settings.policy),
                operators=equipment.operators,
                models=equipment.models,
                run=problem.run or None,
                identity=SourceIdentity(problem.served, settings.shapes),
                script=self.plan.store.load(problem.replays).events if problem.replays else (),
                workers=local.workers,
                combinations=Trials(settings.trials),
            )
            if self.plan.cluster is not None:
                self.plan.cluster.follow(local, partial(self._lost, search))
            try:
                with phase("search"):
                    outcome = search.run(self.display.on_event)
            except Unavailable as error:
                raise self._resumable(error, search.book.run) from error
            return Ended(problem, outcome, dict(local.environment), self.interrupt.came)

    def _evaluator(
        self, problem: Problem
    ) -> AbstractContextManager[LocalEvaluator | RemoteEvaluator]:
        """The evaluator of a search."""
        benches, workers = _benches(problem), self._workers
        if self.plan.cluster is not None:
            return self._evaluating(problem)(benches, workers)
        return self.kept.opened(benches, workers, self.plan.starts)

    def _evaluating(self, problem: Problem) -> Evaluating:
        cluster = self.plan.cluster
        if cluster is None:
            return partial(LocalEvaluator, starts=self.plan.starts)
        return cluster.evaluating(problem, self.display.say)

    @property
    def _workers(self) -> int | None:
        cluster = self.plan.cluster
        return self.plan.workers if cluster is None else cluster.workers

    def _lost(self, search: Search, candidate: Candidate, how: str) -> None:
        """Records and shows that a candidate was lost with its slot, and is repeated."""
        search.book.log("lost", candidate.key, how)
        self.display.say(f"  {candidate.key} is evaluated again, as its slot was lost on {how}")

    def _resumable(self, error: KernelError, run: str) -> KernelError:
        """The error, with a hint how to resume the run."""
        if not self.plan.store.url:
            return error
        hint = f"{error.hint}; everything is stored, and --resume={run} goes on"
        return KernelError(error.what, where=error.where, allowed=error.allowed, hint=hint)

    def learn(self, ended: Ended) -> None:
        """Stores the lessons of a run, if this is enabled."""
        if self.plan.lessons is not None:
            for name in ended.outcome.settings.backends:
                self.plan.lessons.add(distil(ended.outcome, name, date.today().isoformat()))

    def _keep(self, ended: Ended) -> None:
        """Writes the winner to its destination, if it is better than the record there."""
        wanted, problem, outcome = self.plan.destination, ended.problem, ended.outcome
        if outcome.best is None:
            return
        said = ended.here
        promoted = wanted.checkout is not None and wanted.promotes(problem)
        try:
            if promoted or (wanted.out is not None and wanted.writes(problem)):
                self._confirm(problem, outcome)
            if wanted.checkout is not None and wanted.promotes(problem):
                made = promote(problem, outcome, wanted.checkout, said)
                ended.record = self._written(made, made.folder.relative_to(wanted.checkout))
            if wanted.out is not None and wanted.writes(problem):
                stored = winner(problem, outcome, said, self.plan.command)
                made = write_record(wanted.out, stored, replace=wanted.named, tested=False)
                ended.out = self._written(made, made.folder)
        except KernelError as error:  # the result is stored, and the error is shown at the end
            self.note(problem, error)

    def _confirm(self, problem: Problem, outcome: Outcome) -> None:
        """Raises KernelError if an edited kernel is correct only at the shapes of its search."""
        assert outcome.best is not None, "it was asked for"
        kernels = [k.candidate for k in outcome.dispatch.kernels] if outcome.dispatch else []
        bench = _bench(problem, outcome.best.backend)
        settings = replace(problem.settings, secret="", spec=f"winner\n{problem.settings.spec}")
        secret = secret_of(settings, self.plan.store)
        require_confirmed(bench, kernels or [outcome.best], secret, self._evaluating(problem))

    def _written(self, made: Written, folder: Path) -> str:
        """The folder of a written record; empty, with a message, if the existing one was kept."""
        if made.written:
            return str(folder)
        self.display.say(f"  {folder} stays as it is: {made.why}")
        return ""

    def _try_held_out(self, ended: Ended) -> None:
        """Evaluates kernels that share shapes at held-out shapes."""
        found, plan = ended.outcome.dispatch, self.plan
        if found is None or not plan.held_out:
            return
        self.display.say(f"  trying {plan.held_out} shapes that nothing was tuned for")
        correct_by = ended.here.get("correct_by", "")
        ended.held_out = tried_at_held_out(
            ended.problem,
            found,
            plan.held_out,
            self._workers,
            correct_by,
            self._evaluating(ended.problem),
        )

    def note(self, problem: Problem, error: KernelError) -> None:
        """Shows and records the error of a search."""
        self.faults[problem.title] = error
        self.display.say(f"{problem.title}: {error}")


def _benches(problem: Problem) -> list[Bench]:
    return [_bench(problem, name) for name in problem.served]


def _bench(problem: Problem, name: str) -> Bench:
    """The conditions for candidates of a backend."""
    settings, machine = problem.settings, problem.served[name].machine
    return Bench(
        spec=settings.spec,
        machine=machine,
        open=partial(backend_for, machine, name),
        sizes=settings.sizes,
        checks=settings.checks,
        workload=settings.workload,
        secret=settings.secret,
        partly=settings.dispatch > 1,
        rounded=settings.rounded,
    )
