"""The models of a run: their choice, the requests and the replay."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from backends.backend import DescribesSources
from backends.served import Served
from ir.errors import KernelError
from ir.estimate.cost import roofline
from search.cli.promote import source
from search.cli.suite import Problem
from search.cli.traces import trace
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Failure
from search.core.graph import Graph
from search.core.lowered import spec_of
from search.core.model_use import Meter, ModelUse, PromptUse, Spent
from search.core.stored import Keeper
from search.llm.costs import Price, prices
from search.llm.endpoint import KEY, Endpoint
from search.llm.ensemble import ensemble
from search.llm.exchange import FAILED, Answer, ModelError
from search.llm.ledger import Ledger
from search.llm.limited import EndpointLimits
from search.llm.models import Models, asked, replayed
from search.loop.context import Operator, Refused
from search.loop.hooks import Advice, Evaluator
from search.loop.trials import carries
from search.operator import MODEL_OPERATORS
from search.operator.coach import Coach
from search.operator.steps import Workbench
from search.operator.trials import Trials
from search.operator.universal import Language, Universal
from search.prompt.archive import Prompts, shown
from search.prompt.budget import knowledge_tokens, prompt_tokens
from search.prompt.document import Document
from search.prompt.knowledge import library_of
from search.prompt.synthesis import Writer
from search.prompt.timeline import timeline

RESTS = 6  # consecutive waits without an answer, after which a search with no other work ends
NO_KEY = f"no model is used: {KEY} is not set; the search continues without one"


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of answers."""

    endpoint: Endpoint | None  # None if there is no key
    prices: Mapping[str, Price]  # by model
    say: Callable[[str], None]  # prints waits, and missing settings once
    said: set[str] = field(default_factory=set)  # printed lines

    def say_once(self, text: str) -> None:
        """Prints a line, unless an earlier search of the command has printed it."""
        if text not in self.said:
            self.said.add(text)
            self.say(text)


class Judge:
    """Evaluates models' drafts, each once. It is thread-safe."""

    def __init__(self) -> None:
        self._evaluator: Evaluator | None = None
        self._known: dict[str, Evaluated] = {}

    def open(self, evaluator: Evaluator) -> None:
        """Sets the evaluator of drafts."""
        self._evaluator = evaluator

    def __call__(self, draft: Candidate) -> Evaluated | None:
        """The outcome of a draft; None if the search's time is over."""
        assert self._evaluator is not None, "a search opens it before it asks anybody"
        if draft.key not in self._known:
            found = next((o for _, o in self._evaluator.evaluate([draft])), None)
            if found is None or (isinstance(found, Failure) and found.by_chance):
                return found
            self._known[draft.key] = found
        return self._known[draft.key]


@dataclass(frozen=True, slots=True)
class RunModels:
    """The hooks of a search (see `hooks.ModelHooks`) for its models, prompts and drafts."""

    models: Models
    prompts: Prompts
    coach: Coach | None  # None if the prompts do not evolve
    seed: int
    judge: Judge = field(default_factory=Judge)
    _rests: list[int] = field(default_factory=list)  # number of answers at each wait
    _advised: set[int] = field(default_factory=set)  # numbers of requested advice

    def close(self) -> None:
        """Cancels requests in flight."""
        self.models.close()

    def begin(self, run: str) -> None:
        """Assigns later exchanges to this run."""
        self.models.begin(run)

    def advised(
        self,
        told: int,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        refused: Sequence[Refused],
    ) -> Advice | None:
        """The coach's request, after every few evaluations."""
        if self.coach is None:
            return None
        number = told // self.coach.every
        if number == 0 or number in self._advised:
            return None
        self._advised.add(number)
        seed = f"{self.seed}/prompts/{number}"
        return self.coach.begin(graph.copy(), dict(outcomes), seed, tuple(refused))

    def metered(self) -> AbstractContextManager[Meter]:
        """Measures the cost of this thread's exchanges."""
        return self.models.recording.metered()

    def allow(self, seconds: float) -> None:
        """Sets how long answers may be waited for."""
        self.models.time_left.set(seconds)

    def rest(self) -> bool:
        """Waits until the models may be asked again. Returns False after RESTS waits without an
        answer.

        It counts waits and answers, not seconds, so that a replay decides the same.
        """
        answers = sum(isinstance(reply, Answer) for reply in self.models.replies())
        if self._rests.count(answers) >= RESTS:
            return False
        self._rests.append(answers)
        with suppress(ModelError):  # the search's time is over, which its rule reports
            self.models.wait()
        return True

    def use(self, graph: Graph, outcomes: Mapping[str, Evaluated]) -> ModelUse:
        """The requests so far, with their results."""
        replies = self.models.replies()
        answers = sum(isinstance(reply, Answer) for reply in replies)
        failed = Counter(reply.kind for reply in replies if isinstance(reply, ModelError))
        tried = [c.key for c in graph if c.origin.trial is not None]
        prompts = []
        for version in self.prompts.versions.values():
            come_of = shown(version, graph, outcomes)
            prompts.append(
                PromptUse(
                    version.digest,
                    version.parent,
                    version.move,
                    come_of.children,
                    come_of.failed,
                    come_of.gain,
                )
            )
        return ModelUse(
            Spent(self.models.ledger.tokens, self.models.ledger.cost),
            answers,
            self.models.recording.refused(),
            len(replies) - answers,
            tuple(prompts),
            {FAILED[kind]: count for kind, count in sorted(failed.items())},
            sum(isinstance(reply, Answer) and reply.finish == "length" for reply in replies),
            self.models.recording.steps(),
            sum(map(carries, graph)),
            sum(key in outcomes for key in tried),
        )


def sources(words: Sequence[str], endpoint: Endpoint | None, say: Callable[[str], None]) -> Sources:
    """The sources of answers. words: prices as the user gives them."""
    return Sources(endpoint, prices(words), say)


def models_of(problem: Problem, given: Sources, store: Keeper) -> RunModels | None:
    """The models of a problem's run; None if it uses none, or if there is no key."""
    settings = problem.settings
    if not settings.models:
        return None
    names = ensemble(settings.models)
    if problem.replays:
        ledger = Ledger(given.prices)
        models = replayed(problem.replays, store, names, ledger, store)
    elif given.endpoint is None:
        given.say_once(NO_KEY)
        return None
    else:
        ledger = Ledger(given.prices, settings.max_tokens, settings.max_cost)
        waits = random.Random(settings.seed)
        limits = EndpointLimits(at_once=settings.requests)
        models = asked(given.endpoint, names, ledger, store, waits, limits=limits, say=given.say)
    prompts = Prompts()
    coach = Coach(
        ask=models.complete,
        refuse=models.refuse,
        model=names.draw,
        prompts=prompts,
        kernel=settings.kernel,
        machine=problem.machine,
        source=_Emitted(problem),
        answer_tokens=settings.answer_tokens,
    )
    return RunModels(models, prompts, coach if settings.coach else None, settings.seed)


def model_operators(
    problem: Problem, found: RunModels, lessons: Sequence[Document] = ()
) -> dict[str, Operator]:
    """The operators that ask models, by name."""
    languages = {
        name: Language(writer_of(problem, one, lessons), f"kernel.{one.backend.manifest.extension}")
        for name, one in problem.served.items()
    }
    trials = Trials(problem.settings.trials)
    made: list[Operator] = [
        Universal(
            ask=found.models.complete,
            refuse=found.models.refuse,
            model=found.models.ensemble.draw,
            languages=languages,
            source=_Emitted(problem),
            profile=_Profiled(problem),
            prompts=found.prompts,
            workbench=Workbench(found.judge),
            steps=problem.settings.steps,
            trials=trials,
            stepped=found.models.recording.stepped,
            answer_tokens=problem.settings.answer_tokens,
            effort=problem.settings.effort,
            name=name,
            parents=parents,
        )
        for parents, name in enumerate(MODEL_OPERATORS, 1)
    ]
    return {operator.name: operator for operator in made}


def writer_of(problem: Problem, served: Served, lessons: Sequence[Document]) -> Writer:
    """The writer of prompts for a backend, with its documents."""
    settings, machine = problem.settings, served.machine
    return Writer(
        kernel=settings.kernel,
        machine=machine,
        sizes=settings.sizes,
        checks=settings.checks,
        roofline_us=roofline(spec_of(settings.spec), machine, settings.sizes).us,
        language=served.backend.manifest.language,
        library=library_of(served.name).with_documents(lessons),
        interface=_interface(served),
        trials=settings.trials,
        tokens=prompt_tokens(settings.window),
        knowledge=knowledge_tokens(settings.window),
    )


def _interface(served: Served) -> str:
    """A backend's description of its sources; empty if it has none."""
    backend = served.backend
    return backend.interface(served.machine) if isinstance(backend, DescribesSources) else ""


class _Profiled:
    """The timeline of a candidate in words, made once in a separate process."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._known: dict[str, tuple[str, ...]] = {}

    def __call__(self, candidate: Candidate) -> tuple[str, ...]:
        if candidate.key not in self._known:
            try:
                found = timeline(trace(self._problem, candidate))
            except KernelError as error:
                found = (error.what,)
            self._known[candidate.key] = found
        return self._known[candidate.key]


class _Emitted:
    """The source of a candidate in its backend's language; one emission at a time."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._lock = threading.Lock()

    def __call__(self, candidate: Candidate) -> str:
        with self._lock:
            try:
                return source(self._problem, candidate)
            except KernelError as error:
                return f"(it does not lower: {error.what})\n"
