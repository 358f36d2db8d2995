"""The coach: a model edits the regions of the prompts after every few evaluations."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ir.errors import KernelError
from ir.machine import Machine
from search.core.candidate import Candidate
from search.core.evaluation import Evaluated, Evaluation
from search.core.graph import Graph
from search.core.settings import ANSWER_TOKENS
from search.llm.exchange import Answer, Message, ModelError, Request
from search.loop.context import Refused
from search.operator.halting import gave_up
from search.prompt import answer as answers
from search.prompt.answer import edited
from search.prompt.archive import Prompts, Shown, Version, shown
from search.prompt.history import Step, Teller, one_of_each
from search.prompt.regions import MOST
from search.prompt.render import rendered

EVERY = 8  # evaluations between requests; a version is requested, used and judged within 32
SEEN = 3  # children in a request: of the best, and of the latest without a gain
REFUSED = 4  # failed requests in a request
LINES = 24  # lines of a child's diff
MOVES = {
    "improve": "Correct what does not work, by the figures below.",
    "specialise": "Make the advice sharper for this kernel and this machine.",
    "generalise": "Remove what holds for one kernel only, and say what holds for all kernels.",
    "simplify": "Shorten: keep what changes an answer, drop the rest.",
    "elaborate": "Add what is missing: a case, an order of steps, a worked example.",
}


@dataclass(frozen=True, slots=True)
class Coach:
    """Adds versions to the archive of prompts."""

    ask: Callable[[Request], Answer]  # sends a request to a model
    model: Callable[[random.Random], str]  # draws the name of a model
    prompts: Prompts
    kernel: str  # name, for the model
    machine: Machine
    source: Callable[[Candidate], str]  # the source of a candidate in its backend's language
    every: int = EVERY
    answer_tokens: int = ANSWER_TOKENS
    temperature: float = 0.7
    # Called for each rejected answer, with the reason.
    refuse: Callable[[Request, str], None] = lambda request, reason: None

    def begin(
        self,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        seed: str,
        refused: Sequence[Refused] = (),
    ) -> Callable[[], Callable[[], None] | None]:
        """Prepares a request for a new version.

        Returns a function that asks the model. That function returns another one, which adds the
        version to the archive; None if the answer is rejected.

        refused: requests that gave nothing. The result depends only on the arguments and the
        answers.
        """
        rng = random.Random(seed)
        version = self.prompts.draw(graph, outcomes, rng)
        move = rng.choice(list(MOVES))
        text = self._text(version, move, graph, outcomes, refused)
        request = Request(
            self.model(rng),
            (Message("user", text),),
            self.temperature,
            self.answer_tokens,
            rng.randrange(1 << 31),
        )
        return partial(self._asked, version, move, request)

    def _asked(self, version: Version, move: str, request: Request) -> Callable[[], None] | None:
        try:
            answer = self.ask(request)
        except ModelError as error:
            gave_up(error)
            return None
        try:
            found = edited(answer.text, version.regions.files())
            if found.parameters:
                raise answers.Refused(f"a region has no parameters: {', '.join(found.parameters)}")
            made = Version(version.regions.with_files(found.files), version.digest, move)
        except (answers.Refused, KernelError) as error:
            self.refuse(request, str(error))
            return None
        return partial(self._take, made, request)

    def _take(self, made: Version, request: Request) -> None:
        if not self.prompts.add(made):
            self.refuse(request, "the archive has this version")

    def _text(
        self,
        version: Version,
        move: str,
        graph: Graph,
        outcomes: Mapping[str, Evaluated],
        refused: Sequence[Refused],
    ) -> str:
        come_of: Shown = shown(version, graph, outcomes)
        others = [
            f"made by `{v.move}`: best gain {s.gain:.3g} with {s.children} children"
            for v in self.prompts.versions.values()
            if v is not version
            for s in (shown(v, graph, outcomes),)
        ]
        return rendered(
            "meta",
            move=move,
            moves=MOVES,
            regions=version.regions.files(),
            kernel=self.kernel,
            machine=self.machine.title,
            children=come_of.children,
            failed=come_of.failed,
            gain=f"{come_of.gain:.3g}",
            **self._seen(version, graph, outcomes),
            refused=[r for r in refused if r.prompt == version.digest][-REFUSED:],
            versions=others,
            most=MOST,
        )

    def _seen(
        self, version: Version, graph: Graph, outcomes: Mapping[str, Evaluated]
    ) -> dict[str, list[Step]]:
        """The children of a version with the largest gains over their parents, and the latest
        others."""
        teller = Teller(graph, outcomes, self.machine.name, self.source)
        made = [c for c in graph if c.origin.prompt == version.digest and c.key in outcomes]
        gain = {c.key: _gain(c, outcomes) for c in made}
        ranked = one_of_each(sorted(made, key=lambda c: -gain[c.key]))
        best = [c for c in ranked if gain[c.key] > 1.0][:SEEN]
        others = [c for c in one_of_each(ranked, made) if gain[c.key] <= 1.0][-SEEN:]
        told = {"best": best, "others": others}
        return {
            name: [_short(teller.step(graph.node(c.origin.parents[0]), c)) for c in children]
            for name, children in told.items()
        }


def _gain(child: Candidate, outcomes: Mapping[str, Evaluated]) -> float:
    """The speed-up of a child over its parent; 0 if the child failed, 1 if the parent did."""
    before, after = outcomes.get(child.origin.parents[0]), outcomes[child.key]
    if not isinstance(after, Evaluation):
        return 0.0
    return before.us / after.us if isinstance(before, Evaluation) else 1.0


def _short(step: Step) -> Step:
    lines = step.diff.split("\n")
    left = len(lines) - LINES
    if left <= 0:
        return step
    return replace(step, diff="\n".join([*lines[:LINES], f"[... {left} lines left out]"]))
