"""The universal operator: one request to a model, whose context determines the task.

It drafts, repairs, improves, combines or translates, and edits decisions, equations or sources.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ir.errors import KernelError
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation, Failure
from search.core.settings import ANSWER_TOKENS, STEPS
from search.core.trial import Template
from search.llm.exchange import Answer, Message, ModelError, Request
from search.loop.context import Context, GaveUp, Parent, Pending
from search.operator.halting import gave_up
from search.operator.offering import offered
from search.operator.steps import OVER, TOKENS, TOOLS, Step, Workbench, guide, steps_of
from search.operator.trials import Trials
from search.prompt.answer import Refused, edited
from search.prompt.archive import Prompts
from search.prompt.brief import ANGLES, SCHEDULE, VARIANT, Brief
from search.prompt.budget import excerpt
from search.prompt.document import SURFACES
from search.prompt.history import history, name_of, result
from search.prompt.synthesis import Writer

NOTHING = "(nothing)"  # replaces an empty answer, which endpoints do not accept in a conversation
AGAIN = 40_000  # characters of a rejected answer in the next request
TOLD = 1_500  # characters of it that are kept for the coach


@dataclass(frozen=True, slots=True)
class Language:
    """The prompt data for one backend."""

    writer: Writer  # writes prompts
    file: str  # file name of a source


@dataclass(frozen=True, slots=True)
class Universal:
    """Asks a model for a child. After a rejected answer it asks again with the reason, up to
    `tries` times."""

    ask: Callable[[Request], Answer]  # sends a request to a model
    model: Callable[[random.Random], str]  # draws the name of a model
    languages: Mapping[str, Language]  # by backend
    source: Callable[[Candidate], str]  # the source of a candidate in its backend's language
    prompts: Prompts  # the evolving regions
    # The timeline of a candidate with a simulated time, as lines.
    profile: Callable[[Candidate], tuple[str, ...]] = lambda candidate: ()
    name: str = "universal"
    parents: int = 1
    remote: bool = True
    tries: int = 2
    temperature: float = 0.7
    answer_tokens: int = ANSWER_TOKENS  # includes the model's reasoning
    effort: str = ""  # reasoning effort; empty: the endpoint's default
    repairs: float = 0.3  # probability of repairing a failed child of the parent, if there is one
    translations: float = 0.3  # probability of translating an elite of another machine
    # Runs the model's steps before its answer, up to `steps` of them; None: it only answers.
    workbench: Workbench | None = None
    steps: int = STEPS
    # Stores the result of a step, and returns the stored one if the run is replayed or resumed.
    stepped: Callable[[Request, str, Callable[[], str]], str] = lambda request, said, work: work()
    trials: Trials = Trials()  # for answers with parameters
    # Relative probability of each surface.
    surfaces: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(SURFACES, 1.0))
    # Called for each rejected answer, with the reason.
    refuse: Callable[[Request, str], None] = lambda request, reason: None

    def propose(self, context: Context, rng: random.Random) -> Candidate | GaveUp:
        """A child from the model's answer, or the reason why its answers were rejected."""
        pending = self.prepare(context, rng)
        return pending.answer() if isinstance(pending, Pending) else pending

    def prepare(self, context: Context, rng: random.Random) -> Pending | GaveUp:
        """The prepared request, which is not sent."""
        language = self.languages[context.serving]
        context, brief = self._brief(context, language.file, rng)
        prompt = self.prompts.draw(context.graph, context.outcomes, rng)
        try:
            text = language.writer.write(context, brief, prompt.regions)
        except KernelError as error:  # the text to edit is longer than the longest prompt
            return GaveUp(str(error))
        can_step = self.workbench is not None and self.steps > 0
        user = text.user + guide(self.steps) if can_step else text.user
        messages = (Message("system", text.system), Message("user", user))
        request = Request(
            self.model(rng),
            messages,
            self.temperature,
            self.answer_tokens,
            rng.randrange(1 << 31),
            self.effort,
            TOOLS if can_step else (),
        )
        asked = _words(context, brief)

        def answer() -> Candidate | GaveUp:
            found = self._answer(context, brief, language, request)
            if isinstance(found, GaveUp):
                return replace(found, asked=asked, prompt=prompt.digest)
            return replace(found, origin=replace(found.origin, prompt=prompt.digest))

        return Pending(asked, answer)

    def _answer(
        self, context: Context, brief: Brief, language: Language, request: Request
    ) -> Candidate | GaveUp:
        """Sends a request, and again with the reason if its answer is rejected."""
        reason = said = ""
        for _ in range(self.tries):
            try:
                answer, request = self._answered(context, brief, language, request)
            except ModelError as error:
                return gave_up(error)
            found = self._child(context, brief, answer.text)
            if isinstance(found, Candidate):
                return found
            reason = found.reason
            if answer.finish == "length":
                reason = f"{cut_off(request.max_tokens)}; {reason}"
            self.refuse(request, reason)
            said = excerpt(answer.text, TOLD)
            before = Message("assistant", excerpt(answer.text, AGAIN) or NOTHING)
            again = Message("user", language.writer.refusal(reason))
            request = replace(request, messages=(*request.messages, before, again))
        return GaveUp(f"{self.tries} answers were refused; the last: {reason}", answer=said)

    def _answered(
        self, context: Context, brief: Brief, language: Language, request: Request
    ) -> tuple[Answer, Request]:
        """The first final answer, after its steps, and the request that it answers."""
        taken = tokens = 0
        while True:
            answer = self.ask(request)
            tokens += answer.tokens_in + answer.tokens_out
            steps = steps_of(answer) if self.workbench else ()
            if not steps or taken > self.steps:
                return answer, request
            told = []
            for step in steps:
                taken += 1
                if taken > self.steps or tokens > TOKENS:
                    result = OVER
                else:
                    work = partial(self._step, step, context, brief, language)
                    result = self.stepped(request, step.said, work)
                told.append(Message("tool" if step.id else "user", result, call=step.id))
            text = answer.text if answer.calls else answer.text or NOTHING
            said = Message("assistant", excerpt(text, AGAIN), answer.calls)
            request = replace(request, messages=(*request.messages, said, *told))
            if told[-1].content == OVER:
                taken = self.steps + 1
                request = replace(request, tools=())

    def _step(self, step: Step, context: Context, brief: Brief, language: Language) -> str:
        assert self.workbench is not None, "a step was asked for"
        draft = partial(self._child, context, brief)
        return self.workbench.result(step, context, language.writer, draft, self.source)

    def _brief(self, context: Context, file: str, rng: random.Random) -> tuple[Context, Brief]:
        """The task. To repair a failed child, that child replaces the parent."""
        parent, kind, failure, transferred = context.parents[0], "improve", None, None
        failed = _failed(context) if self.parents == 1 else []
        if self.parents > 1:
            kind = "combine"
        elif failed and rng.random() < self.repairs:
            kind, parent = "repair", rng.choice(failed)
            context = replace(context, parents=(parent,))
        elif context.transferred and rng.random() < self.translations:
            kind, transferred = "translate", rng.choice(context.transferred)
        elif not parent.candidate.origin.parents:
            kind = "draft"
        if isinstance(parent.outcome, Failure) and _is_fault(parent.outcome):
            kind, failure = "repair", parent.outcome
        own = parent.candidate.source is not None
        surface = "source" if own else _drawn(self.surfaces, rng)
        texts = {
            VARIANT: parent.candidate.variant,
            SCHEDULE: parent.candidate.schedule,
            file: self.source(parent.candidate),
        }
        may = {"schedule": (SCHEDULE,), "equations": (VARIANT, SCHEDULE)}
        files = may.get(surface, (file,))
        return context, Brief(
            kind=kind,
            surface=surface,
            history=history(context, texts, self.source),
            timeline=self._timeline(parent),
            angle=_angle(context, surface),
            files={name: texts[name] for name in files},
            shown={name: text for name, text in texts.items() if name not in files},
            hint=context.hint,
            failure=failure,
            transferred=transferred,
            other=self.source(context.parents[1].candidate) if kind == "combine" else "",
        )

    def _timeline(self, parent: Parent) -> tuple[str, ...]:
        """The timeline of the parent if its time is simulated. Measured traces vary, so they are
        not shown."""
        outcome = parent.outcome
        if isinstance(outcome, Evaluation) and outcome.time_kind == "simulated":
            return self.profile(parent.candidate)
        return ()

    def _child(self, context: Context, brief: Brief, answer: str) -> Candidate | GaveUp:
        try:
            found = edited(answer, brief.files)
            if found.parameters:
                template = Template(found.files, found.parameters, found.why)
                return self.trials.first(context, template, self.name)
            return offered(context, found.files, self.name, found.why)
        except (Refused, KernelError) as error:
            return GaveUp(str(error))


def cut_off(tokens: int) -> str:
    """The fault of an answer that reached its token limit."""
    return (
        f"your answer was cut off at its limit of {tokens} tokens: think less, and answer with the "
        "changed lines alone"
    )


def _failed(context: Context) -> list[Parent]:
    """Failed children of the first parent that have no children yet."""
    children = context.graph.children(context.parents[0].candidate.key)
    return [
        Parent(c, context.outcomes[c.key])
        for c in children
        if _is_fault(context.outcomes.get(c.key)) and not context.graph.children(c.key)
    ]


def _is_fault(outcome: Evaluated | None) -> bool:
    """Whether there is a fault to repair."""
    return isinstance(outcome, Failure) and not outcome.slow


def _words(context: Context, brief: Brief) -> str:
    """A request in words, for later requests."""
    parent = context.parents[0]
    of = f"{name_of(parent.candidate)}, {result(parent.outcome, context.machine.name)}"
    where = f"; where to look first: {brief.angle}" if brief.angle else ""
    return f"{brief.kind} the {brief.surface} of {of}{where}"


def _angle(context: Context, surface: str) -> str:
    """Where to look first; empty if no other request in flight is for the same kernel."""
    wanted = f"the {surface} of {name_of(context.parents[0].candidate)},"
    alike = sum(wanted in words for words in context.memory.requested)
    return ANGLES[(alike - 1) % len(ANGLES)] if alike else ""


def _drawn(weights: Mapping[str, float], rng: random.Random) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]
